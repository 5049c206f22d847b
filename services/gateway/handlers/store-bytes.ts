/** Stores planned bytes, wherever they come from: small ones ride with the request, others go to where storage says. */
import { Readable } from 'node:stream';
import type { BlobWriter } from '../../../shared/blobs/blobs.ts';
import { uploads } from '../../../shared/contracts/uploads.ts';
import { fail, Failure } from '../../../shared/errors.ts';
import type { Bus, CallContext } from '../../../shared/rpc.ts';
import { soon } from '../context.ts';

export interface LaneDeps {
  readonly bus: Bus;
  readonly blobs: BlobWriter;
  readonly baseUrl: string;
}

/** Assets up to this size ride with the request and are stored in the row. */
export const smallUpTo = 32 * 1024;

export interface Lane {
  readonly planId: string;
  readonly plan: string;
  readonly narrowing: { ttl?: number; maxUses?: number; allowedAgentIds?: string[] };
}

export interface Sending {
  readonly lane: Lane;
  readonly context: CallContext;
  /** The digest that the sender promised, in hexadecimal. */
  readonly sha256: string | undefined;
}

export interface LargeBody {
  readonly source: Readable;
  /** Bytes, when the sender said. */
  readonly size: number | undefined;
  /** Called when storage has said that the bytes may come. */
  readonly accepted?: () => void;
}

export async function storeSmall({ bus }: LaneDeps, { lane, context, sha256 }: Sending, bytes: Uint8Array) {
  return bus.call(uploads.storeSmall, { ...lane, ...(sha256 && { sha256 }) }, context, bytes);
}

export async function storeLarge({ bus, blobs }: LaneDeps, { lane, context, sha256: digest }: Sending, { source, size, accepted }: LargeBody) {
  const { ticket, sha256Wanted } = await bus.call(uploads.openSingle, { ...lane, ...(size !== undefined && { size }) }, soon(context));
  accepted?.();
  try {
    const written = await blobs.write(ticket, source, { maxBytes: ticket.maxBytes, sha256: sha256Wanted || digest !== undefined })
      .catch(async (error: unknown) => {
        // Announced or not, too many bytes have one answer: storage says whether they widen the plan or are too many for any.
        if (error instanceof Failure && error.code === 'payload_too_large') await bus.call(uploads.openSingle, { ...lane, size: ticket.maxBytes + 1 }, context);
        throw error;
      });
    if (digest !== undefined && digest !== written.sha256) throw fail('digest_mismatch');
    return await bus.call(uploads.finishSingle, { ...lane, key: ticket.key, written }, soon(context));
  } catch (error) {
    abandon(bus, ticket.key, context);
    throw error;
  }
}

/** Stores bytes that are here already. */
export async function storeBytes(deps: LaneDeps, sending: Sending, bytes: Buffer) {
  return bytes.length <= smallUpTo ? storeSmall(deps, sending, bytes) : storeLarge(deps, sending, { source: Readable.from([bytes]), size: bytes.length });
}

/** Tells storage that bytes will not be finished. Best effort: the sweeper finds them otherwise. A blob that was finished after all is kept. */
export function abandon(bus: Bus, key: string, { requestId, traceparent }: CallContext): void {
  bus.call(uploads.abandonBlob, { key }, { requestId, traceparent }).catch(() => undefined);
}
