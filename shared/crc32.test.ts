/** The CRC-32 of a whole from its pieces, held against zlib's own. */
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { combineCrc32 } from './crc32.ts';

test('is that of the pieces one after the other, whatever their sizes', () => {
  fc.assert(fc.property(fc.array(fc.uint8Array({ maxLength: 5_000 }), { maxLength: 6 }), (pieces) => {
    expect(combineCrc32(pieces.map((bytes) => ({ crc32: crc32(bytes), size: bytes.length })))).toBe(crc32(Buffer.concat(pieces)));
  }));
});

test('of pieces of many megabytes', () => {
  const pieces = [randomBytes(16 * 1_024 ** 2), randomBytes(3 * 1_024 ** 2 + 1)];
  expect(combineCrc32(pieces.map((bytes) => ({ crc32: crc32(bytes), size: bytes.length })))).toBe(crc32(pieces[1]!, crc32(pieces[0]!)));
});

test('of nothing is zero, and of one piece the piece\'s', () => {
  expect(combineCrc32([])).toBe(0);
  expect(combineCrc32([{ crc32: 0xfedcba98, size: 2 ** 40 }])).toBe(0xfedcba98);
});
