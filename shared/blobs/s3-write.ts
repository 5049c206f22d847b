/** The writing half of the s3 driver: a known length goes in one request, a stream is cut into parts that are held in memory until the store has them. */
import type { Readable } from 'node:stream';
import type { S3WriteTicket, Written } from '../contracts/uploads.ts';
import { fail } from '../errors.ts';
import { defaultIdleMs, type BlobWriter, type StoredPart, type WriteOptions } from './blobs.ts';
import { gather, type Gathering } from './gather.ts';
import { makeInterrupt, type Interrupt } from './interrupt.ts';
import { makeMemoryBudget } from './memory-budget.ts';
import { makePermits, type Permits } from './permits.ts';
import { cutting } from './s3-cutting.ts';
import type { S3Http } from './s3-http.ts';
import { putChunks, startPut } from './s3-put.ts';
import type { StoreCalls } from './store-calls.ts';
import { keepTouching } from './s3-touch.ts';
import { startTally, type Tally } from './tally.ts';

const MiB = 1_024 ** 2;
/** Bytes of a slow source that wait for more of them: a store gives up a request that brings nothing for long. */
const smallBatch = 16 * 1_024;
/** Parts of streams that are in memory at once, over all streams; a larger part counts as several. */
const parts = 16;
const usualPart = 5 * MiB;
const permitMs = 10_000;

/** A write under way. */
interface Writing {
  readonly ticket: S3WriteTicket;
  readonly gathering: Gathering;
  readonly tally: Tally;
  readonly limit: number;
  /** Ends every wait when the blob was given up. */
  readonly interrupt: Interrupt;
}

export function s3Writer(calls: StoreCalls, http: S3Http): BlobWriter {
  const budget = makeMemoryBudget();
  const permits = makePermits(parts, permitMs);

  async function begin<T>(ticket: S3WriteTicket, source: Readable, options: WriteOptions, work: (writing: Writing) => Promise<T>): Promise<T> {
    const leave = budget.enter();
    const gathering = gather(source, { batchBytes: () => (ticket.put ? smallBatch : Math.min(budget.bufferSize(), MiB)), idleMs: options.idleMs ?? defaultIdleMs });
    const interrupt = makeInterrupt();
    const stopTouching = keepTouching(calls, ticket, interrupt);
    try {
      const limit = Math.min(ticket.maxBytes, options.maxBytes ?? Infinity);
      return await work({ ticket, gathering, limit, tally: startTally(options), interrupt });
    } finally {
      stopTouching();
      gathering.stop();
      leave();
    }
  }

  return {
    async write(ticket, source, options) {
      if (ticket.driver !== 's3') throw new Error('the ticket is for another blob store');
      const { put } = ticket;
      return begin(ticket, source, options, (writing) => (put ? putWhole(http, put, writing) : putParts({ http, calls, permits }, writing)));
    },
  };
}

async function next({ gathering, tally, limit, interrupt }: Writing): Promise<Buffer[] | undefined> {
  const batch = await interrupt.until(gathering.next());
  if (batch) tally.count(batch);
  if (tally.size() > limit) throw fail('payload_too_large');
  return batch;
}

/** The last bytes are held back until the source has ended as announced: what is refused never becomes an object. */
async function putWhole(http: S3Http, { url, size }: { url: string; size: number }, writing: Writing): Promise<Written> {
  const { tally, interrupt } = writing;
  let held = await next(writing);
  const put = startPut(http, url, size);
  try {
    for (let batch = held && await next(writing); batch; batch = await next(writing)) {
      if (tally.size() > size) throw fail('payload_too_large');
      await interrupt.until(put.write(held!));
      held = batch;
    }
    if (tally.size() > size) throw fail('payload_too_large');
    if (tally.size() < size) throw fail('part_size_mismatch', { detail: `${size} bytes were announced and ${tally.size()} came.` });
    if (held) await interrupt.until(put.write(held));
    const etag = await interrupt.until(put.finish());
    return { ...tally.written(), etag };
  } finally {
    put.stop();
  }
}

interface Parts {
  readonly http: S3Http;
  readonly calls: StoreCalls;
  readonly permits: Permits;
}

/** Cuts a stream into parts. One that ends within the first is an object by itself; otherwise the store puts the parts together at the end. */
async function putParts({ http, calls, permits }: Parts, writing: Writing): Promise<Written> {
  const { ticket: { key, partSize }, tally, interrupt } = writing;
  const cut = cutting(() => next(writing), partSize);
  const stored: StoredPart[] = [];
  const put = async (chunks: readonly Buffer[], size: number, partNumber?: number) => {
    const url = await calls.signWrite({ key, size, ...(partNumber !== undefined && { partNumber }) });
    return interrupt.until(putChunks(http, url, chunks, size));
  };
  for (let isLast = false; !isLast;) {
    const release = await permits.take(Math.ceil(partSize / usualPart));
    try {
      const part = await cut.next();
      ({ isLast } = part);
      if (isLast && stored.length === 0) await put(part.chunks, part.size);
      else if (part.size > 0) stored.push({ partNumber: stored.length + 1, size: part.size, etag: await put(part.chunks, part.size, stored.length + 1) });
    } finally {
      release();
    }
  }
  if (stored.length > 0) await interrupt.until(calls.seal(key, stored));
  return tally.written();
}
