/** Makes one object of many pieces: the store copies where the sizes allow it, otherwise the bytes pass through here. */
import { AbortMultipartUploadCommand, CompleteMultipartUploadCommand, CreateMultipartUploadCommand, GetObjectCommand, UploadPartCopyCommand, type CompletedPart, type S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { Readable } from 'node:stream';
import type { Segment } from './blobs.ts';
import { clientFailure } from './s3-client.ts';
import type { Place } from './s3-objects.ts';
import { sizeOfAll } from './segments.ts';

const MiB = 1_024 ** 2;
/** What S3 allows of a part, the last one excepted, and of their number. */
const smallestPart = 5 * MiB;
const largestPart = 5 * 1_024 * MiB;
const mostParts = 10_000;
const copiesAtOnce = 4;

interface Store {
  readonly client: S3Client;
  readonly placeOf: (key: string) => Place;
}

export async function joinPieces(store: Store, segments: readonly Segment[], key: string): Promise<Segment> {
  await (canCopy(segments) ? copyPieces(store, segments, key) : streamPieces(store, segments, key))
    .catch((error: unknown) => { throw clientFailure(error); });
  return { key, offset: 0, size: sizeOfAll(segments) };
}

function canCopy(segments: readonly Segment[]): boolean {
  return segments.length > 0 && segments.length <= mostParts
    && segments.every(({ size }, index) => size > 0 && size <= largestPart && (size >= smallestPart || index === segments.length - 1));
}

async function copyPieces({ client, placeOf }: Store, segments: readonly Segment[], key: string): Promise<void> {
  const place = placeOf(key);
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(place));
  try {
    const copied: CompletedPart[] = [];
    const copy = async (index: number) => {
      const { key: from, offset, size } = segments[index]!;
      const { Bucket, Key } = placeOf(from);
      const { CopyPartResult } = await client.send(new UploadPartCopyCommand({
        ...place, UploadId, PartNumber: index + 1, CopySource: `${Bucket}/${encodeURIComponent(Key)}`, CopySourceRange: `bytes=${offset}-${offset + size - 1}`,
      }));
      copied[index] = { PartNumber: index + 1, ETag: CopyPartResult!.ETag };
    };
    const left = segments.map((_segment, index) => index);
    await Promise.all(Array.from({ length: copiesAtOnce }, async () => {
      for (let index = left.shift(); index !== undefined; index = left.shift()) await copy(index);
    }));
    await client.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload: { Parts: copied } }));
  } catch (error) {
    await client.send(new AbortMultipartUploadCommand({ ...place, UploadId })).catch(() => undefined);
    throw error;
  }
}

/** Pieces that are too small to be copied as parts: read one after the other, written as they come, never all in memory. */
async function streamPieces(store: Store, segments: readonly Segment[], key: string): Promise<void> {
  const body = Readable.from(bytesOf(store, segments), { objectMode: false });
  const partSize = Math.max(smallestPart, Math.ceil(sizeOfAll(segments) / mostParts));
  try {
    await new Upload({ client: store.client, params: { ...store.placeOf(key), Body: body }, partSize, queueSize: 2 }).done();
  } finally {
    body.destroy();
  }
}

async function* bytesOf({ client, placeOf }: Store, segments: readonly Segment[]): AsyncGenerator<Buffer> {
  for (const { key, offset, size } of segments) {
    if (size === 0) continue;
    const { Body } = await client.send(new GetObjectCommand({ ...placeOf(key), Range: `bytes=${offset}-${offset + size - 1}` }));
    // Left in the middle, the iteration destroys the body, and its connection is free.
    yield* Body as Readable as AsyncIterable<Buffer>;
  }
}
