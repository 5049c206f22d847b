/** Appends a stream to an append upload, piece by piece: what came is stored even when its sender is lost in the middle. Pipes and resumable uploads come this way. */
import type { Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { BlobWriter, WriteOptions } from '../../shared/blobs/blobs.ts';
import { appends, type AppendLease } from '../../shared/contracts/appends.ts';
import type { WriteTicket, Written } from '../../shared/contracts/uploads.ts';
import { Failure } from '../../shared/errors.ts';
import type { Bus, CallContext } from '../../shared/rpc.ts';
import { cutStream, type Cutting, type Piece } from './cut-stream.ts';
import { paceAfter, type PiecePace } from './domain/piece-pace.ts';
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
/** No piece waits longer because storing takes long. */
const slowestMs = 5_000;

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
  const pace = makePace(lease, options);
  const cutting = startCutting(source, pace, options);
  const beating = keepLease(bus, lease, options.context, cutting);
  /** What is stored when the pieces so far are, and the piece before the last beside it. */
  let stored: Promise<Place> = Promise.resolve(lease);
  let earlier: Promise<unknown> = stored;
  let writing: Promise<unknown> = stored;
  let place: Place = lease;
  try {
    for (let piece = await cutting.next(); piece; piece = await cutting.next()) {
      earlier = stored;
      const written = blobs.write(place.ticket, piece.stream, writeOptions(lease, place, options));
      writing = written;
      stored = pace.measure(piece, storePiece({ bus, lease, place, written, cutting, options, earlier }));
      stored.catch(() => undefined);
      // One that fails may leave the rest of its piece unread, which then never comes to its end.
      await Promise.race([piece.size, written]);
      // While this piece becomes safe the next one is written, but not the one after it.
      await earlier;
      place = placeAfter(place, await piece.size) ?? (await stored);
    }
    return (await stored).offset;
  } catch (error) {
    // Ends the piece under way.
    cutting.fail(error);
    throw await reasonOf(bus, lease, error, options.context);
  } finally {
    // Who writes next may have the same file: nothing of ours is under way in it then.
    await Promise.allSettled([earlier, writing, stored]);
    clearInterval(beating);
    cutting.stop();
  }
}

/** A place that is gone says that the upload ended, and storage says how. */
async function reasonOf(bus: AppendDeps['bus'], { id, lease }: AppendLease, error: unknown, { requestId, traceparent }: CallContext): Promise<unknown> {
  if (!(error instanceof Failure) || error.code !== 'upload_expired') return error;
  return bus.call(appends.keepLease, { id, lease }, { requestId, traceparent }).then(() => error, (reason: unknown) => reason);
}

function writeOptions(lease: AppendLease, { offset, ticket }: Place, { maxBytes = Infinity, idleMs = defaultIdleMs }: AppendOptions): WriteOptions {
  const last = Math.min(lease.maxBytes, lease.offset + maxBytes);
  return { maxBytes: last - offset, sha256: false, idleMs, continues: ticket.driver === 'fs' && ticket.offset > 0 };
}

/** Behind a piece in the same file. Of an object store storage names another place, once the piece is recorded. */
function placeAfter({ offset, ticket }: Place, size: number): Place | undefined {
  if (ticket.driver !== 'fs') return undefined;
  return { offset: offset + size, ticket: { ...ticket, offset: ticket.offset + size, maxBytes: ticket.maxBytes - size } };
}

interface Storing {
  readonly bus: AppendDeps['bus'];
  readonly lease: AppendLease;
  readonly place: Place;
  readonly written: Promise<Written>;
  readonly cutting: Cutting;
  readonly options: AppendOptions;
  readonly earlier: Promise<unknown>;
}

/** Records a piece once it is safe, and the one before it is recorded. */
async function storePiece({ bus, lease: { id, lease, seconds }, place, written: writing, cutting, options, earlier }: Storing): Promise<Place> {
  const [written] = await Promise.all([writing, earlier]);
  if (options.check) {
    await cutting.ended;
    options.check();
  }
  const { requestId, traceparent } = options.context;
  const piece = { id, lease, offset: place.offset, key: place.ticket.key, written };
  return insist(() => bus.call(appends.recordPiece, piece, { requestId, traceparent }), seconds);
}

interface Pace {
  next(): PiecePace;
  /** Notes how long it takes to make a piece safe. */
  measure<T>(piece: Piece, storing: Promise<T>): Promise<T>;
}

/** A store that is slow gets fewer and larger pieces. */
function makePace({ merges }: AppendLease, { quietMs, check }: AppendOptions): Pace {
  let pieces = 0;
  let slowness = 0;
  return {
    next() {
      if (check) return { quietMs: Infinity, ageMs: Infinity };
      const pace = paceAfter(pieces++, merges, quietMs);
      return { ...pace, ageMs: Math.max(pace.ageMs, Math.min(2 * slowness, slowestMs)) };
    },
    async measure(piece, storing) {
      void piece.size.then(async () => {
        const begun = performance.now();
        await storing.catch(() => undefined);
        slowness = performance.now() - begun;
      });
      return storing;
    },
  };
}

function startCutting(source: Readable, pace: Pace, { idleMs = defaultIdleMs, hash, check }: AppendOptions): Cutting {
  return cutStream(source, {
    pieceBytes: check ? Infinity : pieceBytes,
    pace: pace.next,
    idleMs,
    onChunk: hash && ((chunk) => void hash.update(chunk)),
  });
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
