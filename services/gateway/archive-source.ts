/** The bytes of a folder's archive: entry after entry, then the directory. Entries are asked for page by page, twice; between the pages only their places are held. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Writable } from 'node:stream';
import { crc32 as crc32Of } from 'node:zlib';
import { archiveName } from '../../shared/archive-name.ts';
import type { BlobReader, OpenBlob } from '../../shared/blobs/blobs.ts';
import { watchSink, type SinkWatch } from '../../shared/blobs/watch-sink.ts';
import type { AnswerOf } from '../../shared/contract.ts';
import { archivePage, folders } from '../../shared/contracts/folders.ts';
import { errorTable, fail, Failure } from '../../shared/errors.ts';
import type { Bus, CallContext } from '../../shared/rpc.ts';
import type { Source } from './deliver.ts';
import { centralHeader, descriptor, endRecords, localHeader, sizeOfEntry, type ZipEntry, type ZipLayout } from './domain/zip.ts';

type Listed = AnswerOf<typeof folders.listArchive>['entries'][number];
type Entry = ZipEntry & Pick<Listed, 'place' | 'ticket'>;

export interface ArchiveOptions {
  readonly bus: Bus;
  readonly blobs: BlobReader;
  readonly context: CallContext;
  readonly folderId: string;
  readonly layout: ZipLayout;
  /** The place of each entry: 32 bits, the highest byte first. */
  readonly places: Buffer;
}

export interface ArchiveSource extends Source {
  /** Entries sent whole, and whether the archive was. */
  progress(): { entries: number; whole: boolean };
}

/** A receiver that takes nothing for so long is gone. */
const idleMs = 60_000;
/** The directory is written in pieces of about so many bytes. */
const pieceBytes = 64 * 1_024;
/** A page is asked for again while a service restarts: half an archive is of no use to anybody. */
const pageTries = 20;
const pageAgainMs = 500;

export function archiveSource(options: ArchiveOptions): ArchiveSource {
  const { blobs, layout: { isWide, size } } = options;
  /** CRC-32 of those entries that did not know it in front. */
  const learnt = new Map<number, number>();
  const walk = walkEntries(options, true);
  let next: IteratorResult<Entry> | undefined;
  let blob: OpenBlob | undefined;
  let entries = 0;
  let whole = false;

  async function openEntry({ ticket, size: expected }: Entry): Promise<void> {
    blob = ticket && (await blobs.open(ticket));
    if (blob?.size !== expected) throw fail('internal', {}, new Error('a file is not as long as its row says'));
  }

  async function closeEntry(): Promise<void> {
    await blob?.close();
    blob = undefined;
  }

  async function sendEntry(entry: Entry, out: SinkWatch, raw: Writable): Promise<void> {
    await out.write(localHeader(entry, isWide));
    const range = { start: 0, end: entry.size };
    if (entry.crc32 !== undefined) {
      if (entry.size > 0) await blob!.pipe(range, raw);
      return;
    }
    const crc32 = await pipeCounting(blob!, range, raw);
    learnt.set(entry.place, crc32);
    await out.write(descriptor({ crc32, size: entry.size }, isWide));
  }

  async function sendDirectory(out: SinkWatch): Promise<void> {
    let at = 0;
    let directory = 0;
    let pieces: Buffer[] = [];
    let gathered = 0;
    for await (const entry of walkEntries(options, false)) {
      const header = centralHeader(entry, { offset: at, crc32: entry.crc32 ?? learnt.get(entry.place) ?? 0, isWide });
      at += sizeOfEntry(entry, isWide);
      gathered = pieces.push(header) && gathered + header.length;
      directory += header.length;
      if (gathered < pieceBytes) continue;
      await out.write(Buffer.concat(pieces));
      [pieces, gathered] = [[], 0];
    }
    const end = endRecords({ entries, offset: at, size: directory, isWide });
    // The length was promised: an archive that came out otherwise is not passed for a whole one.
    if (at + directory + end.length !== size) throw fail('internal', {}, new Error('an archive is not as long as was counted'));
    await out.write(Buffer.concat([...pieces, end]));
  }

  return {
    async open() {
      next = await walk.next();
      if (!next.done) await openEntry(next.value);
    },
    async send(raw) {
      const out = watchSink(raw, idleMs);
      try {
        while (next && !next.done) {
          if (!blob) await openEntry(next.value);
          await sendEntry(next.value, out, raw);
          await closeEntry();
          entries += 1;
          next = await walk.next();
        }
        await sendDirectory(out);
        whole = true;
      } finally {
        out.stop();
      }
      raw.end();
    },
    close: closeEntry,
    progress: () => ({ entries, whole }),
  };
}

/** Every entry in its order. With tickets those that are there; a file that went meanwhile ends the walk with an error. */
async function* walkEntries(options: ArchiveOptions, withTickets: boolean): AsyncGenerator<Entry> {
  const { places } = options;
  const count = places.length / 4;
  for (let index = 0; index < count;) {
    const wanted = Array.from({ length: Math.min(archivePage, count - index) }, (_, ahead) => places.readUInt32BE(4 * (index + ahead)));
    const page = await askFor(options, wanted, withTickets);
    if (page.length === 0 || page.some(({ place }, at) => place !== wanted[at])) throw fail('folder_not_found', { detail: 'A file of the folder was deleted while it was being sent.' });
    for (const { name, readyAt, ...entry } of page) yield { ...entry, name: archiveName(name), modified: Date.parse(readyAt) };
    index += page.length;
  }
}

async function askFor({ bus, folderId, context: { requestId, traceparent } }: ArchiveOptions, places: number[], withTickets: boolean): Promise<Listed[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      return (await bus.call(folders.listArchive, { folderId, places, withTickets }, { requestId, traceparent })).entries;
    } catch (error) {
      if (tries === pageTries || !(error instanceof Failure && errorTable[error.code].retryable)) throw error;
      await sleep(pageAgainMs);
    }
  }
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
