/** The entries of a folder's archive as storage lists them, page by page; between the pages only their places are held. */
import { setTimeout as sleep } from 'node:timers/promises';
import { archiveName } from '../../shared/archive-name.ts';
import type { AnswerOf } from '../../shared/contract.ts';
import { archivePage, folders } from '../../shared/contracts/folders.ts';
import { errorTable, fail, Failure } from '../../shared/errors.ts';
import type { Bus, CallContext } from '../../shared/rpc.ts';
import type { ZipEntry } from './domain/zip.ts';

type Listed = AnswerOf<typeof folders.listArchive>['entries'][number];
export type Entry = ZipEntry & Pick<Listed, 'place' | 'ticket'>;

export interface EntriesOptions {
  readonly bus: Bus;
  readonly context: CallContext;
  readonly folderId: string;
  /** The place of each entry: 32 bits, the highest byte first. */
  readonly places: Buffer;
}

/** A page is asked for again while a service restarts: half an archive is of no use to anybody. */
const pageTries = 20;
const pageAgainMs = 500;

/** Every entry in its order, a page at a time. With tickets those that are there: a file that went meanwhile ends the walk with an error. */
export async function* walkPages(options: EntriesOptions, withTickets: boolean): AsyncGenerator<Entry[]> {
  const { places } = options;
  const count = places.length / 4;
  for (let index = 0; index < count;) {
    const wanted = Array.from({ length: Math.min(archivePage, count - index) }, (_, ahead) => places.readUInt32BE(4 * (index + ahead)));
    const page = await askFor(options, wanted, withTickets);
    if (page.length === 0 || page.some(({ place }, at) => place !== wanted[at])) throw fail('folder_not_found', { detail: 'A file of the folder was deleted while it was being sent.' });
    yield page.map(({ name, readyAt, ...entry }) => ({ ...entry, name: archiveName(name), modified: Date.parse(readyAt) }));
    index += page.length;
  }
}

async function askFor({ bus, folderId, context: { requestId, traceparent } }: EntriesOptions, places: number[], withTickets: boolean): Promise<Listed[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      return (await bus.call(folders.listArchive, { folderId, places, withTickets }, { requestId, traceparent })).entries;
    } catch (error) {
      if (tries === pageTries || !(error instanceof Failure && errorTable[error.code].retryable)) throw error;
      await sleep(pageAgainMs);
    }
  }
}

/** Files that are read together before they are sent: as many and as large as memory may be taken for. */
const batchEntries = 32;
const batchBytes = 256 * 1_024;

/** The entries of a page in batches: small files together, each large one alone. */
export function* batchesOf(page: readonly Entry[]): Generator<Entry[]> {
  let batch: Entry[] = [];
  let bytes = 0;
  for (const entry of page) {
    if (batch.length > 0 && (batch.length === batchEntries || bytes + entry.size > batchBytes)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(entry);
    bytes += entry.size;
  }
  if (batch.length > 0) yield batch;
}

/** Whether a batch is one file that is too large to be held. */
export function isLarge(batch: readonly Entry[]): boolean {
  return batch.length === 1 && batch[0]!.size > batchBytes;
}
