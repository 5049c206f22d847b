/** Digests of whole uploads. Requests that want the same one at the same time share the reading. */
import type { BlobStore, Segment } from '../../shared/blobs/blobs.ts';
import type { Upload } from './domain/upload.ts';
import { makeJoined } from './joined.ts';

export interface Digests {
  /** SHA-256 of an upload's bytes as of its parts' version. */
  compute(upload: Pick<Upload, 'id' | 'partsVersion'>, segments: readonly Segment[]): Promise<string>;
}

export function makeDigests(blobs: Pick<BlobStore, 'hash'>): Digests {
  const joined = makeJoined();
  return {
    compute: ({ id, partsVersion }, segments) => joined(`${id}:${partsVersion}`, () => blobs.hash(segments)),
  };
}
