/** Appends a stream to an append upload, piece by piece: what came is stored even when its sender is lost in the middle. Pipes and resumable uploads come this way. */
import type { Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { BlobWriter } from '../../shared/blobs/blobs.ts';
import { appends, type AppendLease } from '../../shared/contracts/appends.ts';
import type { WriteTicket, Written } from '../../shared/contracts/uploads.ts';
import type { Bus, CallContext } from '../../shared/rpc.ts';
import { cutStream, type Cutting } from './cut-stream.ts';
import { paceAfter } from './domain/piece-pace.ts';
import { insist, isUnknown } from './insist.ts';

export interface AppendDeps {
  readonly bus: Pick<Bus, 'call'>;
  readonly blobs: BlobWriter;
}

export interface AppendOptions {
  readonly context: CallContext;
  /** Milliseconds of silence after which what came is stored, at the start of the upload; 20 when somebody may be reading along. */
  readonly quietMs: number;
  /** Milliseconds without a byte after which the source is given up; 60,000 when absent. */
  readonly idleMs?: number;
  /** Bytes that may come; the lease's own bound holds as well. */
  readonly maxBytes?: number;
  /** Sees every byte. */
  readonly hash?: Hash | undefined;
  /** Stores all of it as one piece after this has passed, or nothing. */
  readonly check?: (() => void) | undefined;
}

const defaultIdleMs = 60_000;
const pieceBytes = 32 * 1024 ** 2;

/** What is stored so far, and where more goes. */
interface Place {
  readonly offset: number;
  readonly ticket: WriteTicket;
}

/**
 * Appends a source to its end. Answers the offset that is reached. The lease is still held then: completing the upload or releasing it is the caller's.
 * The source is never destroyed, so that a refusal can still be answered on the same connection.
 * @throws payload_too_large, deadline_exceeded for an idle source, upload_state_conflict when the upload ended meanwhile, or the source's own error.
 */
export async function appendStream({ bus, blobs }: AppendDeps, lease: AppendLease, source: Readable, options: AppendOptions): Promise<number> {
  const { check, maxBytes = Infinity, idleMs = defaultIdleMs } = options;
  const last = Math.min(lease.maxBytes, lease.offset + maxBytes);
  const cutting = startCutting(lease, source, options);
  const beating = keepLease(bus, lease, options.context, cutting);
  let place: Place = lease;
  try {
    for (let piece = await cutting.next(); piece; piece = await cutting.next()) {
      const { offset, ticket } = place;
      const written = await blobs.write(ticket, piece, { maxBytes: last - offset, sha256: false, continues: ticket.driver === 'fs' && ticket.offset > 0, idleMs });
      if (check) await finishWhole(cutting, check);
      place = await record(bus, { lease, place, written }, options.context);
    }
    return place.offset;
  } finally {
    clearInterval(beating);
    cutting.stop();
  }
}

function startCutting({ merges }: AppendLease, source: Readable, { quietMs, idleMs = defaultIdleMs, hash, check }: AppendOptions): Cutting {
  let pieces = 0;
  return cutStream(source, {
    pieceBytes: check ? Infinity : pieceBytes,
    pace: () => (check ? { quietMs: Infinity, ageMs: Infinity } : paceAfter(pieces++, merges, quietMs)),
    idleMs,
    onChunk: hash && ((chunk) => void hash.update(chunk)),
  });
}

/** The only piece ended: with its source, or because that broke. */
async function finishWhole(cutting: Cutting, check: () => void): Promise<void> {
  if (await cutting.next()) throw new Error('a whole came in two');
  check();
}

interface Piece {
  readonly lease: AppendLease;
  readonly place: Place;
  readonly written: Written;
}

function record(bus: AppendDeps['bus'], { lease: { id, lease, seconds }, place, written }: Piece, { requestId, traceparent }: CallContext): Promise<Place> {
  const piece = { id, lease, offset: place.offset, key: place.ticket.key, written };
  return insist(() => bus.call(appends.recordPiece, piece, { requestId, traceparent }), seconds);
}

/** Says several times a lease that the writer is there. Once it is the writer no more, its source breaks off. */
function keepLease(bus: AppendDeps['bus'], { id, lease, seconds }: AppendLease, { requestId, traceparent }: CallContext, cutting: Cutting): NodeJS.Timeout {
  return setInterval(() => {
    bus.call(appends.keepLease, { id, lease }, { requestId, traceparent }).catch((error: unknown) => {
      if (!isUnknown(error)) cutting.fail(error);
    });
  }, seconds * 1_000 / 4);
}

/** Stops to write in order, so that another may go on at once. Best effort: the lease ends by itself. */
export async function releaseLease({ bus }: Pick<AppendDeps, 'bus'>, { id, lease }: AppendLease, { requestId, traceparent }: CallContext): Promise<void> {
  await bus.call(appends.releaseLease, { id, lease }, { requestId, traceparent }).catch(() => undefined);
}
