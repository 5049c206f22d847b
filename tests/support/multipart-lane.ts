/** The native multipart lane as a client uses it, and files for it: parts cannot be smaller than 5 MiB. */
import { randomBytes } from 'node:crypto';
import type { Answer, Exchange, Request, Uploaded } from './exchange.ts';

export const MiB = 1_024 ** 2;
export const smallestPart = 5 * MiB;

/** Who speaks, and under which plan. */
export interface Speaker {
  readonly bearer?: string | undefined;
  readonly plan?: string | undefined;
  readonly headers?: Record<string, string>;
}

export interface Begun {
  readonly uploadId: string;
  readonly transferId: string;
  readonly state: string;
  readonly partSize: number;
  readonly partCount: number;
  readonly maxParallelParts: number;
  readonly expiresAt: string;
}

/** Bytes for `count` parts of the smallest size, the last one of `tail` bytes. */
export function partsOf(count: number, tail = smallestPart): Buffer[] {
  return Array.from({ length: count }, (_, index) => randomBytes(index === count - 1 ? tail : smallestPart));
}

export function multipartLane(exchange: Exchange) {
  const request = ({ bearer, plan, headers }: Speaker): Pick<Request, 'bearer' | 'headers'> => ({
    bearer, headers: { ...(plan !== undefined && { 'X-Transfer-Plan': plan }), ...headers },
  });

  function init(fields: Record<string, unknown>, speaker: Speaker = {}): Promise<Answer> {
    return exchange.call('/api/upload/multipart/init', { ...request(speaker), json: fields });
  }

  /** An upload of parts of the smallest size. */
  async function begin(size: number, fields: Record<string, unknown> = {}, speaker: Speaker = {}): Promise<Begun> {
    const answer = await init({ filename: 'parts.bin', size, ...(speaker.plan === undefined && { partSize: smallestPart }), ...fields }, speaker);
    if (answer.status !== 201) throw new Error(`init: ${answer.text}`);
    return answer.json as Begun;
  }

  function part(uploadId: string, partNumber: number | string, bytes: Uint8Array, speaker: Speaker = {}): Promise<Answer> {
    return exchange.call(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=${partNumber}`, { ...request(speaker), body: new Uint8Array(bytes) });
  }

  /** Sends all parts in parallel; answers them as `complete` lists them. */
  async function sendAll(uploadId: string, parts: readonly Uint8Array[], speaker: Speaker = {}): Promise<{ partNumber: number; etag: string }[]> {
    return Promise.all(parts.map(async (bytes, index) => {
      const answer = await part(uploadId, index + 1, bytes, speaker);
      if (answer.status !== 200) throw new Error(`part: ${answer.text}`);
      return { partNumber: index + 1, etag: answer.json.etag as string };
    }));
  }

  function complete(uploadId: string, fields: Record<string, unknown> = {}, speaker: Speaker = {}): Promise<Answer> {
    return exchange.call('/api/upload/multipart/complete', { ...request(speaker), json: { uploadId, ...fields } });
  }

  function abort(uploadId: string, speaker: Speaker = {}): Promise<Answer> {
    return exchange.call('/api/upload/multipart/abort', { ...request(speaker), json: { uploadId } });
  }

  function status(uploadId: string, speaker: Speaker = {}): Promise<Answer> {
    return exchange.call(`/api/upload/multipart/status?uploadId=${uploadId}`, request(speaker));
  }

  /** The whole lane, for tests of what comes after it. */
  async function store(parts: readonly Buffer[], fields: Record<string, unknown> = {}, speaker: Speaker = {}): Promise<Uploaded> {
    const { uploadId } = await begin(parts.reduce((sum, bytes) => sum + bytes.length, 0), fields, speaker);
    await sendAll(uploadId, parts, speaker);
    const answer = await complete(uploadId, {}, speaker);
    if (answer.status !== 201) throw new Error(`complete: ${answer.text}`);
    return answer.json as Uploaded;
  }

  return { init, begin, part, sendAll, complete, abort, status, store };
}
