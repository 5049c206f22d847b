/** The TUS protocol as a careful client speaks it, one request at a time. */
import { byMethod } from './any-method.ts';
import type { Answer, Exchange, Uploaded } from './exchange.ts';

export interface Speaker {
  readonly bearer?: string | undefined;
  readonly headers?: Record<string, string>;
}

/** `Upload-Metadata` of these words. */
export function metadataOf(words: Readonly<Record<string, string>>): string {
  return Object.entries(words).map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`).join(',');
}

/** The upload response, from the headers of the answer that ended an upload. */
export function toldShare(headers: Headers): Uploaded {
  const told = { id: 'x-transfer-id', shareId: 'x-share-id', shareUrl: 'x-share-url', downloadUrl: 'x-download-url', expiresAt: 'x-expires-at', deleteToken: 'x-delete-token' };
  return Object.fromEntries(Object.entries(told).map(([field, name]) => [field, headers.get(name)])) as unknown as Uploaded;
}

export const bytesType = 'application/offset+octet-stream';

export function tusLane({ baseUrl, call }: Pick<Exchange, 'baseUrl' | 'call'>) {
  const headersOf = ({ bearer, headers }: Speaker, more: Record<string, string> = {}) => ({ 'tus-resumable': '1.0.0', ...more, ...(bearer && { authorization: `Bearer ${bearer}` }), ...headers });

  function create(fields: Record<string, string>, speaker: Speaker = {}, body?: Uint8Array): Promise<Answer> {
    return call('/api/tus', { method: 'POST', headers: headersOf(speaker, { ...fields, ...(body && { 'content-type': bytesType }) }), ...(body && { body: new Uint8Array(body) }) });
  }

  /** Begins an upload. Answers its address. */
  async function begin(size: number, words: Readonly<Record<string, string>> = { filename: 'a.bin' }, speaker: Speaker = {}): Promise<string> {
    const answer = await create({ 'upload-length': String(size), 'upload-metadata': metadataOf(words) }, speaker);
    if (answer.status !== 201) throw new Error(`create: ${answer.status} ${answer.text}`);
    return answer.headers.get('location')!;
  }

  function patch(address: string, offset: number | string, bytes: Uint8Array, speaker: Speaker = {}): Promise<Answer> {
    return call(address, { method: 'PATCH', headers: headersOf(speaker, { 'upload-offset': String(offset), 'content-type': bytesType }), body: new Uint8Array(bytes) });
  }

  async function head(address: string, speaker: Speaker = {}): Promise<{ status: number; offset: number; headers: Headers }> {
    const { status, headers } = await byMethod(new URL(address, baseUrl), 'HEAD', headersOf(speaker));
    return { status, headers, offset: Number(headers.get('upload-offset') ?? NaN) };
  }

  function end(address: string, speaker: Speaker = {}): Promise<Answer> {
    return call(address, { method: 'DELETE', headers: headersOf(speaker) });
  }

  return { create, begin, patch, head, end };
}
