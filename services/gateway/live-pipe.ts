/** Where a fetch of a pipe finds its bytes while their sender still writes them. */
import type { ServerResponse } from 'node:http';
import type { BlobReader, OpenBlob } from '../../shared/blobs/blobs.ts';
import { fail } from '../../shared/errors.ts';
import type { Source } from './deliver.ts';
import type { FollowPipes } from './follow-pipes.ts';
import type { SpendingFetch } from './uses.ts';

export interface LivePipeDeps {
  readonly blobs: BlobReader;
  readonly follows: FollowPipes;
  /** Milliseconds that a fetch waits for the first byte. */
  readonly pipeWaitMs: number;
}

/** Follows the pipe at the pace of its reader: it ends in order only after the last byte, and breaks off when the pipe fails. */
export function livePipe({ blobs, follows, pipeWaitMs }: LivePipeDeps, { targetId, context }: SpendingFetch, raw: ServerResponse): Source {
  const pipe = follows.follow(targetId, context);
  const onClose = () => pipe.leave();
  const onFailed = () => { if (raw.headersSent) raw.destroy(); };
  raw.once('close', onClose);
  pipe.failed.addEventListener('abort', onFailed);
  let next: OpenBlob | undefined;

  /** The next bytes, opened; undefined after the last. */
  async function openNext(offset: number): Promise<OpenBlob | undefined> {
    const { size, ticket } = await pipe.after(offset);
    return size > offset ? blobs.open(ticket) : undefined;
  }

  return {
    async open() {
      // Without chunks, its end and its failure would look the same.
      if (raw.req.httpVersion === '1.0') throw fail('invalid_request', { detail: 'A pipe whose bytes still come is fetched by HTTP/1.1.' });
      let late = false;
      const waiting = setTimeout(() => {
        late = true;
        pipe.leave();
      }, pipeWaitMs);
      try {
        next = await openNext(0);
      } catch (error) {
        throw late ? fail('deadline_exceeded', { detail: 'The sender of the pipe has not begun.' }, error) : error;
      } finally {
        clearTimeout(waiting);
      }
    },
    async send(to) {
      for (let offset = 0; next; next = await openNext(offset)) {
        const blob = next;
        await blob.pipe({ start: 0, end: blob.size }, to).finally(() => blob.close());
        offset += blob.size;
      }
      to.end();
    },
    async close() {
      raw.off('close', onClose);
      pipe.failed.removeEventListener('abort', onFailed);
      pipe.leave();
      await next?.close();
    },
  };
}
