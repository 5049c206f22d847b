/** Plans as their holder sees them, and the single lane with everything a client may say on it. */
import { createHash } from 'node:crypto';
import type { Answer, Exchange } from './exchange.ts';

export type Planned = Awaited<ReturnType<Exchange['plan']>>;

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A Content-Digest header of the bytes (RFC 9530). */
export const digestOf = (bytes: Uint8Array): string => `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`;

/** The ids that a plan has fixed before anything is stored. Its payload is readable by the holder. */
export function idsOf({ plan }: Pick<Planned, 'plan'>): { transferId: string; shareId: string } {
  const { transferId, shareId } = JSON.parse(Buffer.from(plan.split('.')[1]!, 'base64url').toString('utf8')) as { transferId: string; shareId: string };
  return { transferId, shareId };
}

/** The same plan with other claims and the old signature. */
export function forge({ plan }: Pick<Planned, 'plan'>, change: (claims: any) => void): string {
  const [header, payload, signature] = plan.split('.') as [string, string, string];
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as unknown;
  change(claims);
  return `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`;
}

/** Bytes as a body without Content-Length, in pieces. */
export function chunked(bytes: Uint8Array, pieceSize = 16 * 1_024): ReadableStream {
  let sent = 0;
  return new ReadableStream({
    pull(controller) {
      if (sent >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(sent, sent + pieceSize));
      sent += pieceSize;
    },
  });
}

export function singleLane({ call }: Exchange) {
  /** Sends a body under a plan; `query` narrows it. */
  return async function put(planned: Planned, body: Uint8Array | ReadableStream, more: { query?: string; headers?: Record<string, string> } = {}): Promise<Answer> {
    const { method, url, headers } = planned.upload;
    return call(`${url}${more.query ?? ''}`, { method, headers: { ...headers, ...more.headers }, body: body instanceof ReadableStream ? body : new Uint8Array(body) });
  };
}
