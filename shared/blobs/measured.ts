/** Counts the bytes that go through a process to and from the blob store. */
import { count, measureNow, type Metrics } from '../metrics.ts';
import type { BlobReader, BlobWriter } from './blobs.ts';

/** The same reader and writer, counted. Bytes count when their transfer has ended, however it did. */
export function measureBlobs(blobs: BlobReader & BlobWriter, metrics: Metrics): BlobReader & BlobWriter {
  const countBytes = count(metrics, { name: 'aex_blob_bytes_total', help: 'Bytes written to and read from the blob store; what a broken transfer had moved is not counted', labels: ['direction'] });
  let moving = 0;
  measureNow(metrics, { name: 'aex_blob_transfers_in_flight', help: 'Writes to and reads from the blob store that are under way' }, () => moving);

  async function moved<T>(work: () => Promise<T>): Promise<T> {
    moving += 1;
    return work().finally(() => { moving -= 1; });
  }

  return {
    async write(ticket, source, options) {
      const written = await moved(() => blobs.write(ticket, source, options));
      countBytes({ direction: 'in' }, written.size);
      return written;
    },
    async open(ticket) {
      const blob = await blobs.open(ticket);
      return {
        size: blob.size,
        async pipe(range, sink) {
          await moved(() => blob.pipe(range, sink));
          countBytes({ direction: 'out' }, range.end - range.start);
        },
        close: () => blob.close(),
      };
    },
  };
}
