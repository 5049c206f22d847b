/** Gathers a stream's chunks into large batches: few large writes are twice as fast as many small ones. */
import type { Readable } from 'node:stream';
import { fail } from '../errors.ts';
import { ignoreLateErrors } from './watch-sink.ts';

/** More chunks than this in one batch cost more than they save, and a client chooses how small its chunks are. */
const maxChunks = 1_000;

export interface Gathering {
  /** The next batch, when it is full or the source has ended; undefined after the last. The source goes on filling the one after it. */
  next(): Promise<Buffer[] | undefined>;
  /** Stops listening. The source is paused, not destroyed. */
  stop(): void;
}

export interface GatherOptions {
  /** Bytes from which on a batch is full. */
  readonly batchBytes: () => number;
  readonly idleMs: number;
}

interface Waiter {
  resolve(batch: Buffer[] | undefined): void;
  reject(error: unknown): void;
}

/** Starts to gather. At most one batch is kept; the source is paused while it is not taken. */
export function gather(source: Readable, { batchBytes, idleMs }: GatherOptions): Gathering {
  let batch: Buffer[] = [];
  let size = 0;
  /** Decided when a chunk comes and kept: the measure moves with the load, and a source paused as full must not turn into one that is not. */
  let full = false;
  let ended = false;
  let failure: { error: unknown } | undefined;
  let waiter: Waiter | undefined;

  // Time in which we ourselves hold the source back is not the source's idleness.
  const idle = setTimeout(() => { if (!source.isPaused()) failWith(fail('deadline_exceeded', { detail: 'No bytes came for too long.' })); }, idleMs);

  function takeBatch(): Buffer[] | undefined {
    const taken = batch;
    batch = [];
    size = 0;
    full = false;
    if (!ended) source.resume();
    idle.refresh();
    return taken.length > 0 ? taken : undefined;
  }
  function settleWaiter(): void {
    if (!waiter) return;
    const { resolve, reject } = waiter;
    if (failure) reject(failure.error);
    else if (full || ended) resolve(takeBatch());
    else return;
    waiter = undefined;
  }
  function failWith(error: unknown): void {
    failure ??= { error };
    settleWaiter();
  }
  function onData(chunk: Buffer): void {
    batch.push(chunk);
    size += chunk.length;
    idle.refresh();
    full ||= size >= batchBytes() || batch.length >= maxChunks;
    if (!full) return;
    source.pause();
    settleWaiter();
  }
  function onEnd(): void {
    ended = true;
    settleWaiter();
  }
  function onClose(): void {
    if (!ended) failWith(new Error('the source closed before its end'));
  }

  if (source.readableEnded) onEnd();
  else if (source.destroyed) failWith(source.errored ?? new Error('the source was closed'));
  ignoreLateErrors(source);
  source.on('error', failWith);
  source.on('end', onEnd);
  source.on('close', onClose);
  source.on('data', onData);
  source.resume();

  return {
    next: () => new Promise((resolve, reject) => {
      waiter = { resolve, reject };
      settleWaiter();
    }),
    stop() {
      clearTimeout(idle);
      source.off('data', onData).off('end', onEnd).off('close', onClose).off('error', failWith);
      source.pause();
    },
  };
}
