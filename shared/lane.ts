/** The single lane as whoever has the bytes walks it: a place, the bytes, the finish (interface chapter: Transfer plan and creation). */
import { Readable } from 'node:stream';
import type { z } from 'zod';
import type { BlobWriter } from './blobs/blobs.ts';
import type { AnswerOf } from './contract.ts';
import { uploads, type Described, type narrowing } from './contracts/uploads.ts';
import { fail, Failure } from './errors.ts';
import type { Bus, CallContext } from './rpc.ts';

/** Assets up to this size ride with the request and are stored in the row. */
export const smallUpTo = 32 * 1024;

const callMs = 4_500;

export interface LaneDeps {
  readonly bus: Pick<Bus, 'call'>;
  readonly blobs: BlobWriter;
}

/** The plan of a transfer, and what its request says beside it. */
export interface Lane {
  readonly planId: string;
  readonly plan: string;
  readonly narrowing: z.input<typeof narrowing>;
  readonly described?: Described;
}

export interface LaneBody {
  readonly source: Readable;
  /** Bytes, when they are known before they come. */
  readonly size?: number | undefined;
  /** What the bytes were promised to have. */
  readonly sha256?: string | undefined;
  /** Called when a place is found: from now on the bytes are wanted. */
  readonly onOpen?: () => void;
}

/** Promise: an upload calls before and after its bytes, and its client waits for both together less than ten seconds. */
export function soon(context: CallContext): CallContext {
  return { ...context, deadline: Date.now() + callMs };
}

/**
 * Writes a body where storage says, and has it made a transfer with its share.
 * @throws payload_too_large, plan_widened, digest_mismatch, the source's own error; nothing of the body is kept then.
 */
export async function storeLarge({ bus, blobs }: LaneDeps, { described, ...lane }: Lane, body: LaneBody, context: CallContext): Promise<AnswerOf<typeof uploads.finishSingle>> {
  const { source, size, sha256 } = body;
  const { ticket, sha256Wanted } = await bus.call(uploads.openSingle, { ...lane, ...(size !== undefined && { size }) }, soon(context));
  body.onOpen?.();
  try {
    const written = await blobs.write(ticket, source, { maxBytes: ticket.maxBytes, sha256: sha256Wanted || sha256 !== undefined })
      .catch(async (error: unknown) => {
        // Announced or not, too many bytes have one answer: storage says whether they widen the plan or are too many for any.
        if (error instanceof Failure && error.code === 'payload_too_large') await bus.call(uploads.openSingle, { ...lane, size: ticket.maxBytes + 1 }, context);
        throw error;
      });
    if (sha256 !== undefined && sha256 !== written.sha256) throw fail('digest_mismatch');
    return await bus.call(uploads.finishSingle, { ...lane, ...(described && { described }), key: ticket.key, written }, soon(context));
  } catch (error) {
    abandon(bus, ticket.key, context);
    throw error;
  }
}

/** Stores bytes that are here already. */
export async function storeBytes(deps: LaneDeps, lane: Lane, bytes: Buffer, context: CallContext): Promise<AnswerOf<typeof uploads.storeSmall>> {
  if (bytes.length <= smallUpTo) return deps.bus.call(uploads.storeSmall, lane, soon(context), bytes);
  return storeLarge(deps, lane, { source: Readable.from([bytes]), size: bytes.length }, context);
}

/** Tells storage that bytes will not be finished. Best effort: the sweeper finds them otherwise. A blob that was finished after all is kept. */
export function abandon(bus: Pick<Bus, 'call'>, key: string, { requestId, traceparent }: CallContext): void {
  bus.call(uploads.abandonBlob, { key }, { requestId, traceparent }).catch(() => undefined);
}
