/** What a response head says: follow it, take its body, or give up. */
import { fail } from '../../../shared/errors.ts';

export interface ResponseHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Answers whose body is the whole of what was asked for. A part (206) or nothing yet (202) is not it. */
const whole: ReadonlySet<number> = new Set([200, 203]);

/** Codings that are undone though none was asked for: some servers know no other form of a file. */
const codings = { gzip: 'gzip', 'x-gzip': 'gzip', deflate: 'deflate', br: 'br' } as const;
export type Coding = (typeof codings)[keyof typeof codings];

export function isRedirect({ status }: ResponseHead): boolean {
  return redirects.has(status);
}

/**
 * Checks a head whose body is to be stored. Answers the coding that its bytes are in, if any.
 * @throws import_upstream_failed, payload_too_large for a declared length
 */
export function checkHead(head: ResponseHead, maxBytes: number): Coding | undefined {
  const { status, headers } = head;
  if (!whole.has(status)) throw fail('import_upstream_failed', { detail: `The server answered with status ${status}.` });
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  return codingOf(String(headers['content-encoding'] ?? '').trim().toLowerCase());
}

function codingOf(name: string): Coding | undefined {
  if (name === '' || name === 'identity') return undefined;
  // One over another is how a small body becomes an endless one.
  if (!Object.hasOwn(codings, name)) throw fail('import_upstream_failed', { detail: 'The server answered in an encoding that was not asked for.' });
  return codings[name as keyof typeof codings];
}

export function tooLarge(maxBytes: number) {
  return fail('payload_too_large', { detail: `What the URL leads to is larger than ${maxBytes} bytes.` });
}
