/** The fs blob driver: files under one folder that storage and the gateway share. */
import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, stat, unlink } from 'node:fs/promises';
import type { BlobDriver, BlobStore, Segment } from './blobs.ts';
import { isAbsent, makeFile, pathOf, readFully } from './fs-files.ts';
import { fsReader } from './fs-read.ts';
import { fsWriter } from './fs-write.ts';
import { makeMemoryBudget } from './memory-budget.ts';

const hashStep = 1024 ** 2;

/** Opens the driver over a root folder. Its memory is bounded over all transfers that go through this object. */
export function openFsBlobs(root: string): BlobDriver {
  const budget = makeMemoryBudget();
  return { ...fsWriter(root, budget), ...fsReader(root, budget), ...fsStore(root) };
}

function fsStore(root: string): BlobStore {
  return {
    async ticketToWrite({ key, offset, maxBytes }) {
      await makeFile(pathOf(root, key));
      return { driver: 'fs', key, offset, maxBytes };
    },
    async ticketToRead(segments) {
      return { driver: 'fs', segments: [...segments] };
    },
    async remove(key) {
      await unlink(pathOf(root, key)).catch((error: unknown) => { if (!isAbsent(error)) throw error; });
    },
    async lastTouched(key) {
      const found = await stat(pathOf(root, key)).catch((error: unknown) => { if (!isAbsent(error)) throw error; });
      return found?.mtimeMs;
    },
    async hash(segments) {
      const hash = createHash('sha256');
      for (const segment of segments) await hashSegment(root, segment, hash);
      return hash.digest('hex');
    },
  };
}

/** Hashes one piece while the next is being read. */
async function hashSegment(root: string, { key, offset, size }: Segment, hash: Hash): Promise<void> {
  const handle = await open(pathOf(root, key), constants.O_RDONLY);
  try {
    const buffers = [Buffer.allocUnsafeSlow(Math.min(hashStep, size)), Buffer.allocUnsafeSlow(Math.min(hashStep, size))];
    const read = async (at: number, turn: number) => {
      const buffer = buffers[turn]!.subarray(0, Math.min(hashStep, size - at));
      if ((await readFully(handle, buffer, offset + at)) < buffer.length) throw new Error('a blob is shorter than its row says');
      return buffer;
    };
    let next = read(0, 0);
    for (let at = 0, turn = 1; at < size; at += hashStep, turn = 1 - turn) {
      const buffer = await next;
      if (at + hashStep < size) next = read(at + hashStep, turn);
      next.catch(() => undefined);
      hash.update(buffer);
    }
    await next;
  } finally {
    await handle.close();
  }
}
