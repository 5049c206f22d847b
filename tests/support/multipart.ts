/** A multipart upload in steps, for tests that need one to exist. */
import type { Exchange, Uploaded } from './exchange.ts';

export interface Begun {
  readonly uploadId: string;
  readonly transferId: string;
}

export async function beginMultipart({ must }: Exchange, size: number, fields: Record<string, unknown> = {}, bearer?: string, headers: Record<string, string> = {}): Promise<Begun> {
  return (await must('/api/upload/multipart/init', { json: { filename: 'parts.bin', size, ...fields }, bearer, headers })).json as Begun;
}

export async function sendPart({ must }: Exchange, uploadId: string, content: string, bearer?: string): Promise<void> {
  await must(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`, { body: content, bearer, headers: { 'content-type': 'application/octet-stream' } });
}

/** A whole multipart upload of one part. */
export async function uploadByParts(exchange: Exchange, content: string, fields: Record<string, unknown> = {}, bearer?: string): Promise<Uploaded & Begun> {
  const begun = await beginMultipart(exchange, Buffer.byteLength(content), fields, bearer);
  await sendPart(exchange, begun.uploadId, content, bearer);
  const done = await exchange.must('/api/upload/multipart/complete', { json: { uploadId: begun.uploadId }, bearer });
  return { ...begun, ...(done.json as Uploaded) };
}
