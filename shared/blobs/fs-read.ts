/** The reading half of the fs driver: two buffers a fetch, one being filled while the other is being sent. */
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { fail } from '../errors.ts';
import type { BlobReader, OpenBlob, Segment } from './blobs.ts';
import { pathOf, readFully } from './fs-files.ts';
import type { MemoryBudget } from './memory-budget.ts';
import { piecesOf, sizeOfAll } from './segments.ts';
import { watchSink } from './watch-sink.ts';

const idleMs = 60_000;
const firstStep = 256 * 1024;
const smallestStep = 64 * 1024;
/** A write that takes longer than this shows a slow sink: smaller ones let us see its progress. */
const slowMs = 2_000;
/** Files held open from the start. A blob of more pieces than this opens the others when it comes to them, so that no fetch uses up the descriptors. */
const heldFiles = 32;

export function fsReader(root: string, budget: MemoryBudget): BlobReader {
  return {
    async open({ driver, segments }) {
      if (driver !== 'fs') throw new Error('the ticket is for another blob store');
      const keys = [...new Set(segments.map((segment) => segment.key))].slice(0, heldFiles);
      const held = await openAll(root, keys);
      return openBlob({ root, budget, segments, held });
    },
  };
}

/** Opens every file, or none. */
async function openAll(root: string, keys: readonly string[]): Promise<Map<string, FileHandle>> {
  const opened = await Promise.allSettled(keys.map((key) => openToRead(root, key)));
  const held = new Map(opened.flatMap((result, index) => (result.status === 'fulfilled' ? [[keys[index]!, result.value] as const] : [])));
  const failed = opened.find((result) => result.status === 'rejected');
  if (!failed) return held;
  await closeAll(held);
  throw failed.reason;
}

async function openToRead(root: string, key: string): Promise<FileHandle> {
  return open(pathOf(root, key), constants.O_RDONLY);
}

async function closeAll(held: ReadonlyMap<string, FileHandle>): Promise<void> {
  await Promise.all([...held.values()].map((handle) => handle.close()));
}

interface Parts {
  readonly root: string;
  readonly budget: MemoryBudget;
  readonly segments: readonly Segment[];
  readonly held: Map<string, FileHandle>;
}

function openBlob({ root, budget, segments, held }: Parts): OpenBlob {
  let closing: Promise<void> | undefined;
  return {
    size: sizeOfAll(segments),
    async pipe(range, sink) {
      const leave = budget.enter();
      const sending = startSending(sink, budget);
      try {
        for (const piece of piecesOf(segments, range)) {
          const handle = held.get(piece.key);
          if (handle) await sending.send(handle, piece);
          else await sendBriefly(await openToRead(root, piece.key), piece, sending);
        }
        await sending.finish();
      } finally {
        sending.stop();
        leave();
      }
    },
    close: () => (closing ??= closeAll(held)),
  };
}

async function sendBriefly(handle: FileHandle, piece: Segment, sending: Sending): Promise<void> {
  try {
    await sending.send(handle, piece);
  } finally {
    await handle.close();
  }
}

interface Sending {
  send(handle: FileHandle, piece: Segment): Promise<void>;
  /** Waits until the sink has taken everything. */
  finish(): Promise<void>;
  stop(): void;
}

function startSending(sink: Writable, budget: MemoryBudget): Sending {
  const watch = watchSink(sink, idleMs);
  const buffers = [Buffer.alloc(0), Buffer.alloc(0)];
  /** When each buffer's bytes have been taken: only then may it be filled again. */
  const taken = [Promise.resolve(), Promise.resolve()];
  let turn = 0;
  let step = firstStep;

  function write(chunk: Buffer): Promise<void> {
    const begun = performance.now();
    const done = watch.write(chunk).then(() => {
      step = performance.now() - begun > slowMs ? Math.max(smallestStep, step / 2) : step * 2;
    });
    done.catch(() => undefined);
    return done;
  }

  async function sendChunk(handle: FileHandle, position: number, left: number): Promise<number> {
    await taken[turn];
    step = Math.min(step, budget.bufferSize());
    const size = Math.min(step, left);
    // A buffer that is too small, or much larger than there is memory for now, is replaced.
    if (buffers[turn]!.length < size || buffers[turn]!.length > 4 * step) buffers[turn] = Buffer.allocUnsafeSlow(size);
    const buffer = buffers[turn]!.subarray(0, size);
    if ((await readFully(handle, buffer, position)) < size) throw fail('internal', {}, new Error('a blob is shorter than its row says'));
    taken[turn] = write(buffer);
    turn = 1 - turn;
    return size;
  }

  return {
    async send(handle, piece) {
      let sent = 0;
      while (sent < piece.size) sent += await sendChunk(handle, piece.offset + sent, piece.size - sent);
    },
    async finish() { await Promise.all(taken); },
    stop: watch.stop,
  };
}
