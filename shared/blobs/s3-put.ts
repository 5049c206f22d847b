/** One PUT of a known length to an object store. It counts only when the store has acknowledged it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../errors.ts';
import { makeInterrupt } from './interrupt.ts';
import { answerOf, storeFailure, type S3Http } from './s3-http.ts';
import { watchSink } from './watch-sink.ts';

/** A store that takes nothing of a body, and one that does not acknowledge it. */
const sinkIdleMs = 20_000;
const answerMs = 20_000;
const tries = 3;

export interface Put {
  /** Resolves when the store's connection has taken the chunks. Rejects at once when the store refuses. */
  write(chunks: readonly Buffer[]): Promise<void>;
  /** Ends the body and waits for the acknowledgement. Answers what the store calls the bytes. */
  finish(): Promise<string>;
  /** Breaks off whatever is not finished: the store then keeps nothing of it. */
  stop(): void;
}

export function startPut(http: S3Http, url: string, size: number): Put {
  const request = http.begin(url, { method: 'PUT', headers: { 'Content-Length': size } });
  const watch = watchSink(request, sinkIdleMs);
  const acknowledged = answerOf(request, () => answerMs).then((response) => {
    // Read to its end, so that the connection is free again.
    response.resume();
    return unquoted(response.headers.etag ?? '');
  });
  let isDone = false;
  const refusal = makeInterrupt();
  acknowledged.then(() => { isDone = true; }, refusal.fire);
  return {
    async write(chunks) {
      await refusal.until(Promise.all(chunks.map((chunk) => watch.write(chunk))).catch(async (error: unknown) => {
        // The reason that the store gave says more than the broken connection, and may come after it.
        await sleep(50);
        throw storeFailure(error);
      }));
    },
    async finish() {
      request.end();
      return acknowledged;
    },
    stop() {
      watch.stop();
      if (!isDone) request.destroy();
    },
  };
}

/** Puts bytes that are in memory; an outage that passes soon is waited for. */
export async function putChunks(http: S3Http, url: string, chunks: readonly Buffer[], size: number): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const put = startPut(http, url, size);
    try {
      if (size > 0) await put.write(chunks);
      return await put.finish();
    } catch (error) {
      if (attempt === tries || !(error instanceof Failure) || error.code !== 'service_unavailable') throw error;
    } finally {
      put.stop();
    }
    await sleep(200 * 2 ** attempt);
  }
}

/** The store's name for bytes, without the quotes of the header. */
export function unquoted(etag: string): string {
  return etag.replace(/^"|"$/g, '');
}
