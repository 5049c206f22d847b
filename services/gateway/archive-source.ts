/** The bytes of a folder's archive: entry after entry, then the directory, for which the entries are listed once more. */
import { Writable } from 'node:stream';
import { crc32 as crc32Of } from 'node:zlib';
import type { BlobReader, OpenBlob } from '../../shared/blobs/blobs.ts';
import { watchSink, type SinkWatch } from '../../shared/blobs/watch-sink.ts';
import { fail } from '../../shared/errors.ts';
import { batchesOf, isLarge, walkPages, type EntriesOptions, type Entry } from './archive-entries.ts';
import type { Source } from './deliver.ts';
import { centralHeader, descriptor, endRecords, localHeader, sizeOfEntry, type ZipLayout } from './domain/zip.ts';

export interface ArchiveOptions extends EntriesOptions {
  readonly blobs: BlobReader;
  readonly layout: ZipLayout;
}

export interface ArchiveSource extends Source {
  /** Entries sent whole, and whether the archive was. */
  progress(): { entries: number; whole: boolean };
}

/** Some files of the archive, ready to be sent. */
interface Ready {
  readonly entries: number;
  send(out: SinkWatch, raw: Writable): Promise<void>;
  close(): Promise<void>;
}

/** A receiver that takes nothing for so long is gone. */
const idleMs = 60_000;
/** The directory is written in pieces of about so many bytes. */
const pieceBytes = 64 * 1_024;

export function archiveSource(options: ArchiveOptions): ArchiveSource {
  /** CRC-32 of those entries that did not know it in front, by their places. */
  const learnt = new Map<number, number>();
  const batches = readyBatches(options, learnt);
  let next: IteratorResult<Ready> | undefined;
  let entries = 0;
  let whole = false;

  async function sendFiles(out: SinkWatch, raw: Writable): Promise<void> {
    for (; next && !next.done; next = await batches.next()) {
      await next.value.send(out, raw);
      await next.value.close();
      entries += next.value.entries;
    }
  }

  return {
    async open() { next = await batches.next(); },
    async send(raw) {
      const out = watchSink(raw, idleMs);
      try {
        await sendFiles(out, raw);
        await sendDirectory(options, learnt, out);
        whole = true;
      } finally {
        out.stop();
      }
      raw.end();
    },
    async close() { if (next && !next.done) await next.value.close(); },
    progress: () => ({ entries, whole }),
  };
}

async function* readyBatches(options: ArchiveOptions, learnt: Map<number, number>): AsyncGenerator<Ready> {
  for await (const page of walkPages(options, true)) {
    for (const batch of batchesOf(page)) yield isLarge(batch) ? await openLarge(options, batch[0]!, learnt) : await readSmall(options, batch, learnt);
  }
}

/** Small files are read side by side and written at once: many tiny files cost one write, not three each. */
async function readSmall(options: ArchiveOptions, batch: readonly Entry[], learnt: Map<number, number>): Promise<Ready> {
  const { layout: { isWide } } = options;
  const contents = await Promise.all(batch.map((entry) => readWhole(options, entry)));
  const pieces = batch.flatMap((entry, index) => {
    const bytes = contents[index]!;
    if (entry.crc32 !== undefined) return [localHeader(entry, isWide), bytes];
    const crc32 = crc32Of(bytes);
    learnt.set(entry.place, crc32);
    return [localHeader(entry, isWide), bytes, descriptor({ crc32, size: entry.size }, isWide)];
  });
  return { entries: batch.length, send: (out) => out.write(Buffer.concat(pieces)), close: async () => undefined };
}

async function readWhole(options: ArchiveOptions, entry: Entry): Promise<Buffer> {
  if (entry.size === 0) return Buffer.alloc(0);
  const blob = await openFile(options, entry);
  const chunks: Buffer[] = [];
  try {
    // The reader's buffers are its own again when a chunk is taken.
    await blob.pipe({ start: 0, end: entry.size }, new Writable({ write: (chunk: Buffer, _encoding, done) => { chunks.push(Buffer.from(chunk)); done(); } }));
  } finally {
    await blob.close();
  }
  return Buffer.concat(chunks);
}

async function openFile({ blobs }: ArchiveOptions, { ticket, size }: Entry): Promise<OpenBlob> {
  const blob = ticket && (await blobs.open(ticket));
  if (blob?.size === size) return blob;
  await blob?.close();
  throw fail('internal', {}, new Error('a file is not as long as its row says'));
}

async function openLarge(options: ArchiveOptions, entry: Entry, learnt: Map<number, number>): Promise<Ready> {
  const { layout: { isWide } } = options;
  const blob = await openFile(options, entry);
  const range = { start: 0, end: entry.size };
  return {
    entries: 1,
    async send(out, raw) {
      await out.write(localHeader(entry, isWide));
      if (entry.crc32 !== undefined) return blob.pipe(range, raw);
      const crc32 = await pipeCounting(blob, range, raw);
      learnt.set(entry.place, crc32);
      await out.write(descriptor({ crc32, size: entry.size }, isWide));
    },
    close: () => blob.close(),
  };
}

/** Pipes a file and answers the CRC-32 of what went by. */
async function pipeCounting(blob: OpenBlob, range: { start: number; end: number }, raw: Writable): Promise<number> {
  let crc32 = 0;
  const counting = new Writable({
    write(chunk: Buffer, _encoding, done) {
      crc32 = crc32Of(chunk, crc32);
      raw.write(chunk, done);
    },
  });
  const leave = () => void counting.destroy();
  raw.once('close', leave);
  try {
    await blob.pipe(range, counting);
    return crc32;
  } finally {
    raw.off('close', leave);
  }
}

async function sendDirectory(options: ArchiveOptions, learnt: ReadonlyMap<number, number>, out: SinkWatch): Promise<void> {
  const { layout: { isWide, size: counted }, places } = options;
  let offset = 0;
  let size = 0;
  let pieces: Buffer[] = [];
  let gathered = 0;
  for await (const page of walkPages(options, false)) {
    for (const entry of page) {
      const header = centralHeader(entry, { offset, crc32: entry.crc32 ?? learnt.get(entry.place) ?? 0, isWide });
      offset += sizeOfEntry(entry, isWide);
      size += header.length;
      gathered += header.length;
      pieces.push(header);
      if (gathered < pieceBytes) continue;
      await out.write(Buffer.concat(pieces));
      [pieces, gathered] = [[], 0];
    }
  }
  const end = endRecords({ entries: places.length / 4, offset, size, isWide });
  // The length was promised: an archive that came out otherwise is not passed for a whole one.
  if (offset + size + end.length !== counted) throw fail('internal', {}, new Error('an archive is not as long as was counted'));
  await out.write(Buffer.concat([...pieces, end]));
}
