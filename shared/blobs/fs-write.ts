/** The writing half of the fs driver: gathers, writes and syncs, with at most one write under way while the next is gathered. */
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import type { FsWriteTicket, Written } from '../contracts/uploads.ts';
import { fail } from '../errors.ts';
import { defaultIdleMs, type BlobWriter, type WriteOptions } from './blobs.ts';
import { isAbsent, pathOf, syncFolder, writeFully } from './fs-files.ts';
import { gather } from './gather.ts';
import type { MemoryBudget } from './memory-budget.ts';
import { startTally } from './tally.ts';

export function fsWriter(root: string, budget: MemoryBudget): BlobWriter {
  return {
    async write(ticket, source, options) {
      if (ticket.driver !== 'fs') throw new Error('the ticket is for another blob store');
      const path = pathOf(root, ticket.key);
      const leave = budget.enter();
      try {
        const handle = await openPlace(path);
        try {
          const written = await pour(source, handle, ticket, options, budget);
          // The row that makes these bytes count is written after this.
          await Promise.all([handle.datasync(), syncFolder(dirname(path))]);
          return written;
        } finally {
          await handle.close();
        }
      } finally {
        leave();
      }
    },
  };
}

/** Opens a file that storage made. It is never made here: a late writer of an ended upload would leave a file that nobody knows. */
function openPlace(path: string): Promise<FileHandle> {
  return open(path, constants.O_WRONLY).catch((error: unknown) => {
    throw isAbsent(error) ? fail('upload_expired', {}, error) : error;
  });
}

async function pour(source: Readable, handle: FileHandle, ticket: FsWriteTicket, options: WriteOptions, budget: MemoryBudget): Promise<Written> {
  const limit = Math.min(ticket.maxBytes, options.maxBytes ?? Infinity);
  const tally = startTally(options);
  const gathering = gather(source, { batchBytes: budget.bufferSize, idleMs: options.idleMs ?? defaultIdleMs });
  let writing = Promise.resolve();
  try {
    for (let batch = await gathering.next(); batch; batch = await gathering.next()) {
      const position = ticket.offset + tally.size();
      tally.count(batch);
      // Checked before the write: past the limit lies another part of the same file.
      if (tally.size() > limit) throw fail('payload_too_large');
      await writing;
      writing = writeFully(handle, batch, position);
      writing.catch(() => undefined);
    }
  } finally {
    gathering.stop();
    // The descriptor may be closed only when no write uses it any more.
    await writing.catch(() => undefined);
  }
  await writing;
  return tally.written();
}
