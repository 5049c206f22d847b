/** Cuts a stream into pieces while it comes: each is a stream of its own that ends when it is full, old, or when nothing more comes for the moment. */
import { Readable } from 'node:stream';
import { ignoreLateErrors } from '../../shared/blobs/watch-sink.ts';
import { fail } from '../../shared/errors.ts';
import type { PiecePace } from './domain/piece-pace.ts';

export interface CutOptions {
  /** Bytes from which on a piece is full; the last chunk may go beyond. */
  readonly pieceBytes: number;
  /** Asked at the start of each piece. */
  readonly pace: () => PiecePace;
  /** Milliseconds without a byte after which the source is given up. */
  readonly idleMs: number;
  /** Sees every chunk that goes into a piece, in order. */
  readonly onChunk?: ((chunk: Buffer) => void) | undefined;
}

export interface Piece {
  readonly stream: Readable;
  /** Bytes, once all of them have come. */
  readonly size: Promise<number>;
}

export interface Cutting {
  /**
   * The next piece, from its first bytes on; undefined after the last. To be asked for when all bytes of the piece before have come.
   * A source that breaks ends its piece in order, so that what came is kept; its error comes in place of the next piece.
   */
  next(): Promise<Piece | undefined>;
  /** Resolves when the source has ended in order, and rejects when it breaks. */
  readonly ended: Promise<void>;
  /** Breaks the source from outside. */
  fail(error: unknown): void;
  /** Stops listening. The source is paused, not destroyed. */
  stop(): void;
}

interface Waiter {
  resolve(piece: Piece | undefined): void;
  reject(error: unknown): void;
}

/** No timer of the system waits longer. */
const longestMs = 2 ** 31 - 1;

/** Starts to cut. Nothing is kept beside the piece under way, whose reader holds the source back. */
export function cutStream(source: Readable, { pieceBytes, pace, idleMs, onChunk }: CutOptions): Cutting {
  let piece: Piece | undefined;
  let size = 0;
  let settleSize: (size: number) => void = () => undefined;
  const end = Promise.withResolvers<void>();
  end.promise.catch(() => undefined);
  let timers: NodeJS.Timeout[] = [];
  let ended = false;
  let failure: { error: unknown } | undefined;
  let waiter: Waiter | undefined;

  function settleWaiter(): void {
    const waiting = waiter;
    if (!waiting || (!failure && !ended && !piece)) return;
    waiter = undefined;
    clearTimers();
    if (piece) waiting.resolve(piece);
    else if (failure) waiting.reject(failure.error);
    else waiting.resolve(undefined);
  }
  function clearTimers(): void {
    for (const timer of timers) clearTimeout(timer);
    timers = [];
  }
  function openPiece(): void {
    const whole = Promise.withResolvers<number>();
    const stream: Readable = new Readable({ read() { if (piece?.stream === stream) source.resume(); } });
    piece = { stream, size: whole.promise };
    settleSize = whole.resolve;
    size = 0;
    settleWaiter();
    const { quietMs, ageMs } = pace();
    const quiet = setTimeout(() => {
      // Time in which we ourselves hold the source back is not its silence.
      if (source.isPaused()) quiet.refresh();
      else cut();
    }, Math.min(quietMs, longestMs));
    timers = [quiet, setTimeout(cut, Math.min(ageMs, longestMs))];
  }
  function cut(): void {
    clearTimers();
    piece?.stream.push(null);
    piece = undefined;
    settleSize(size);
    source.pause();
  }
  function failWith(error: unknown): void {
    failure ??= { error };
    end.reject(error);
    cut();
    settleWaiter();
  }
  function onData(chunk: Buffer): void {
    onChunk?.(chunk);
    if (!piece) openPiece();
    else timers[0]?.refresh();
    size += chunk.length;
    if (piece!.stream.push(chunk) === false) source.pause();
    if (size >= pieceBytes) cut();
  }
  function onEnd(): void {
    ended = true;
    end.resolve();
    cut();
    settleWaiter();
  }
  function onClose(): void {
    if (!ended) failWith(new Error('the source closed before its end'));
  }

  if (source.readableEnded) onEnd();
  else if (source.destroyed) onClose();
  ignoreLateErrors(source);
  source.on('error', failWith);
  source.on('end', onEnd);
  source.on('close', onClose);
  source.on('data', onData);
  source.pause();

  return {
    next: () => new Promise((resolve, reject) => {
      waiter = { resolve, reject };
      timers = [setTimeout(() => failWith(fail('deadline_exceeded', { detail: 'No bytes came for too long.' })), idleMs)];
      settleWaiter();
      if (waiter) source.resume();
    }),
    ended: end.promise,
    fail: failWith,
    stop() {
      clearTimers();
      source.off('data', onData).off('end', onEnd).off('close', onClose).off('error', failWith);
      source.pause();
    },
  };
}
