/** Requests to the provider: none follows a redirect, all of one exchange end by the same deadline, plain http stays on this machine, and no answer is endless. */
import { fail } from '../../../shared/errors.ts';

/** For all requests of one exchange together. */
export const deadlineMs = 8_000;
const answerBytes = 1_024 ** 2;

export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** Makes the function that fetches for one exchange; its deadline begins now. */
export function carefulFetch() {
  const deadline = AbortSignal.timeout(deadlineMs);
  return async function fetchCarefully(address: string, init: object): Promise<Response> {
    const url = new URL(address);
    if (url.protocol !== 'https:' && !isLoopback(url)) throw fail('oidc_provider_failed', { detail: 'The provider named an address without https.' });
    const response = await fetch(url, { ...init, redirect: 'manual', signal: deadline });
    const bytes = await readAtMost(response, answerBytes);
    return new Response(bytes.length === 0 ? null : bytes, { status: response.status, headers: response.headers });
  };
}

async function readAtMost(response: Response, max: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > max) throw fail('oidc_provider_failed', { detail: 'The provider’s answer is too long.' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
