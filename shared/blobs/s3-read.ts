/** The reading half of the s3 driver: one ranged request a piece, piped with back-pressure. */
import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import { fail, Failure } from '../errors.ts';
import type { BlobReader, Segment } from './blobs.ts';
import { gather } from './gather.ts';
import { makeMemoryBudget, type MemoryBudget } from './memory-budget.ts';
import { answerOf, storeFailure, type S3Http } from './s3-http.ts';
import { piecesOf, sizeOfAll } from './segments.ts';
import type { StoreCalls } from './store-calls.ts';
import { watchSink, type SinkWatch } from './watch-sink.ts';

/** A sink that takes nothing, and a store that gives nothing. */
const sinkIdleMs = 60_000;
const storeIdleMs = 20_000;
/** The gateway's client waits for its first byte less than ten seconds. */
const answerMs = 8_000;
/** After this the addresses of a ticket are asked for again. */
const ticketMs = 60_000;
const largestBatch = 256 * 1_024;

interface Parts {
  readonly http: S3Http;
  readonly budget: MemoryBudget;
  readonly urlOf: (key: string) => Promise<string>;
}

export function s3Reader(calls: Pick<StoreCalls, 'signRead'>, http: S3Http): BlobReader {
  const budget = makeMemoryBudget();
  return {
    async open(ticket) {
      if (ticket.driver !== 's3') throw new Error('the ticket is for another blob store');
      const opened = performance.now();
      const urlOf = async (key: string) => (performance.now() - opened < ticketMs && ticket.urls[key]) || calls.signRead(key);
      return {
        size: sizeOfAll(ticket.segments),
        pipe: (range, sink) => pipePieces({ http, budget, urlOf }, piecesOf(ticket.segments, range), sink),
        // Nothing is held between open and pipe: what is removed then, storage keeps for a while.
        close: async () => undefined,
      };
    },
  };
}

async function pipePieces(parts: Parts, pieces: readonly Segment[], sink: Writable): Promise<void> {
  const leave = parts.budget.enter();
  const watch = watchSink(sink, sinkIdleMs);
  const gone = new AbortController();
  const onClose = () => gone.abort();
  sink.once('close', onClose);
  if (sink.destroyed) onClose();
  try {
    for (const piece of pieces) await pipePiece(parts, piece, { watch, signal: gone.signal });
  } catch (error) {
    throw gone.signal.aborted ? new Error('the sink closed early', { cause: error }) : error;
  } finally {
    sink.off('close', onClose);
    watch.stop();
    leave();
  }
}

interface Sink {
  readonly watch: SinkWatch;
  readonly signal: AbortSignal;
}

/** A connection that breaks is followed by one for the rest, as long as each brings something: stores cut those whose reader is slow. */
async function pipePiece(parts: Parts, { key, offset, size }: Segment, sink: Sink): Promise<void> {
  for (let sent = 0; sent < size;) {
    const { bytes, failure } = await pipeAnswer(parts, { key, offset: offset + sent, size: size - sent }, sink);
    if (bytes === 0 || sink.signal.aborted) throw failure;
    sent += bytes;
  }
}

interface Piped {
  readonly bytes: number;
  /** Why there are no more. */
  readonly failure?: Failure;
}

async function pipeAnswer(parts: Parts, piece: Segment, { watch, signal }: Sink): Promise<Piped> {
  const response = await request(parts, piece, signal);
  const gathering = gather(response, { batchBytes: () => Math.min(parts.budget.bufferSize(), largestBatch), idleMs: storeIdleMs });
  const next = () => gathering.next().catch((error: unknown) => storeFailure(error));
  let bytes = 0;
  let taken: Promise<unknown> = Promise.resolve();
  try {
    for (let batch = await next(); batch; batch = await next()) {
      await taken;
      if (batch instanceof Failure) return { bytes, failure: batch };
      bytes += batch.reduce((sum, chunk) => sum + chunk.length, 0);
      taken = Promise.all(batch.map((chunk) => watch.write(chunk)));
      taken.catch(() => undefined);
    }
    await taken;
    return { bytes };
  } finally {
    gathering.stop();
    if (!response.readableEnded) response.destroy();
  }
}

const tooShort = () => fail('internal', {}, new Error('a blob is not as long as its row says'));

async function request(parts: Parts, piece: Segment, signal: AbortSignal): Promise<IncomingMessage> {
  const url = await parts.urlOf(piece.key);
  for (let isAgain = false; ; isAgain = true) {
    const sent = parts.http.begin(url, { method: 'GET', headers: { Range: `bytes=${piece.offset}-${piece.offset + piece.size - 1}` }, signal });
    sent.end();
    try {
      const response = await answerOf(sent, () => answerMs);
      if (Number(response.headers['content-length']) === piece.size) return response;
      sent.destroy();
      throw tooShort();
    } catch (error) {
      // The store may have closed a connection that was kept just when it was used again: nothing has been read of it.
      if (isAgain || !sent.reusedSocket || (error as Failure).code !== 'service_unavailable' || signal.aborted) throw error;
    }
  }
}
