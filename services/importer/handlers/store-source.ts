/** Stores what is being fetched: a small body in the row, anything larger as it comes, without holding it. */
import { Readable } from 'node:stream';
import { uploads } from '../../../shared/contracts/uploads.ts';
import { smallUpTo, soon, storeLarge, type Lane } from '../../../shared/lane.ts';
import type { CallContext } from '../../../shared/rpc.ts';
import type { Deps } from '../deps.ts';

interface Storing {
  readonly lane: Lane;
  readonly body: AsyncGenerator<Buffer>;
  /** Told so many bytes have come, as they come. */
  readonly onBytes: (size: number) => void;
}

/** How large a body is, its source may not say, or not truly: the first bytes show it. */
export async function storeSource({ bus, blobs }: Pick<Deps, 'bus' | 'blobs'>, { lane, body, onBytes }: Storing, context: CallContext) {
  const chunks = told(body, onBytes);
  const { head, isWhole } = await readHead(chunks);
  if (isWhole) return bus.call(uploads.storeSmall, lane, soon(context), Buffer.concat(head));
  const source = Readable.from(joined(head, chunks), { objectMode: false });
  return storeLarge({ bus, blobs }, lane, { source }, context).finally(() => source.destroy());
}

async function readHead(chunks: AsyncGenerator<Buffer>): Promise<{ head: Buffer[]; isWhole: boolean }> {
  const head: Buffer[] = [];
  for (let size = 0; size <= smallUpTo;) {
    const { done, value } = await chunks.next();
    if (done) return { head, isWhole: true };
    head.push(value);
    size += value.length;
  }
  return { head, isWhole: false };
}

async function* joined(head: readonly Buffer[], rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield* head;
  yield* rest;
}

async function* told(chunks: AsyncGenerator<Buffer>, onBytes: (size: number) => void): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    onBytes(size);
    yield chunk;
  }
}
