/** What is known of bytes while they are written. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Written } from '../contracts/uploads.ts';
import type { WriteOptions } from './blobs.ts';

export interface Tally {
  count(batch: readonly Buffer[]): void;
  /** Bytes so far. */
  size(): number;
  /** What came in all. Asked once, at the end. */
  written(): Written;
}

export function startTally({ sha256 }: Pick<WriteOptions, 'sha256'>): Tally {
  const hash = sha256 ? createHash('sha256') : undefined;
  let size = 0;
  let checksum = 0;
  return {
    count(batch) {
      for (const chunk of batch) {
        size += chunk.length;
        checksum = crc32(chunk, checksum);
        hash?.update(chunk);
      }
    },
    size: () => size,
    written: () => ({ size, crc32: checksum, ...(hash && { sha256: hash.digest('hex') }) }),
  };
}
