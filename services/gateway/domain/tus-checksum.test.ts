import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { checksumAlgorithms, readChecksum } from './tus-checksum.ts';

test.each(checksumAlgorithms)('%s is read', (algorithm) => {
  const digest = createHash(algorithm).update('x').digest();
  expect(readChecksum(`${algorithm} ${digest.toString('base64')}`)).toEqual({ algorithm, digest });
});

test('no header is no checksum', () => {
  expect(readChecksum(undefined)).toBeUndefined();
});

test.each(['', 'sha1', 'sha1 ', 'sha1 AAAA', 'sha1  AAAA', 'crc32 AAAAAA==', 'toString AAAA', 'md5 AAAAAAAAAAAAAAAAAAAAAA==, md5 AAAAAAAAAAAAAAAAAAAAAA=='])('%j is refused', (header) => {
  expect(() => readChecksum(header)).toThrow('Upload-Checksum');
});
