/** Archives as their readers find them: sizes counted beforehand, 64 bits where they are needed, and read by a reader that takes nothing on trust. */
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readZip } from '../../../tests/support/read-zip.ts';
import { centralHeader, descriptor, endRecords, layOut, localHeader, sizeOfEntry, type ZipEntry } from './zip.ts';

interface File { readonly name: string; readonly bytes: Buffer; readonly isUnchecked?: boolean }

const modified = Date.UTC(2026, 10, 20, 21, 22, 24);

/** An archive in memory, with the size that was counted before. */
function zip(files: readonly File[], asWide?: boolean): { archive: Buffer; counted: number } {
  const counted = layOut({
    entries: files.length, bytes: files.reduce((sum, { bytes }) => sum + bytes.length, 0),
    nameBytes: files.reduce((sum, { name }) => sum + Buffer.byteLength(name), 0), unchecked: files.filter(({ isUnchecked }) => isUnchecked).length,
  });
  const isWide = asWide ?? counted.isWide;
  const entries = files.map(({ name, bytes, isUnchecked }): ZipEntry => ({ name, size: bytes.length, crc32: isUnchecked ? undefined : crc32(bytes), modified }));
  const front = entries.flatMap((entry, index) => {
    const { bytes, isUnchecked } = files[index]!;
    return [localHeader(entry, isWide), bytes, ...(isUnchecked ? [descriptor({ crc32: crc32(bytes), size: bytes.length }, isWide)] : [])];
  });
  let offset = 0;
  const directory = entries.map((entry, index) => {
    const header = centralHeader(entry, { offset, crc32: crc32(files[index]!.bytes), isWide });
    offset += sizeOfEntry(entry, isWide);
    return header;
  });
  const size = directory.reduce((sum, header) => sum + header.length, 0);
  return { archive: Buffer.concat([...front, ...directory, endRecords({ entries: files.length, offset, size, isWide })]), counted: counted.size };
}

describe('an archive', () => {
  test('has the files that were put in, and the size that was counted', () => {
    const file = fc.record({ name: fc.string({ minLength: 1, maxLength: 40 }).filter((name) => name.isWellFormed()), bytes: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)), isUnchecked: fc.boolean() });
    fc.assert(fc.property(fc.array(file, { maxLength: 20 }), (files) => {
      const { archive, counted } = zip(files);
      expect(archive.length).toBe(counted);
      expect(readZip(archive).map(({ name, bytes }) => ({ name, bytes }))).toEqual(files.map(({ name, bytes }) => ({ name, bytes })));
    }));
  });

  test('says when a file was made, and that others may read it', () => {
    expect(readZip(zip([{ name: 'a', bytes: Buffer.from('a') }]).archive)).toMatchObject([{ modified: new Date(modified), mode: 0o100644 }]);
  });

  test.each([true, false])('can be read with sizes of 64 bits, CRC-32 behind the bytes: %s', (isUnchecked) => {
    const files = [{ name: 'a', bytes: randomBytes(100), isUnchecked }, { name: 'b/ü', bytes: Buffer.alloc(0), isUnchecked }];
    expect(readZip(zip(files, true).archive).map(({ bytes }) => bytes)).toEqual(files.map(({ bytes }) => bytes));
  });

  test.each([65_534, 65_535, 65_536])('of %i entries has all of them', (count) => {
    const files = Array.from({ length: count }, (_, index) => ({ name: String(index), bytes: Buffer.alloc(0) }));
    const { archive, counted } = zip(files);
    expect(archive.length).toBe(counted);
    expect(readZip(archive).length).toBe(count);
  });
});

describe('64 bits', () => {
  const GiB = 1_024 ** 3;
  test.each([
    ['4 GiB in one file', { entries: 1, bytes: 4 * GiB, nameBytes: 1, unchecked: 0 }, true],
    ['files that have 4 GiB with their headers', { entries: 2, bytes: 4 * GiB - 200, nameBytes: 2, unchecked: 0 }, true],
    ['a little less', { entries: 2, bytes: 4 * GiB - 300, nameBytes: 2, unchecked: 0 }, false],
    ['many entries', { entries: 100_000, bytes: 0, nameBytes: 600_000, unchecked: 0 }, false],
  ])('of sizes for %s: %#', (_title, facts, isWide) => {
    expect(layOut(facts).isWide).toBe(isWide);
  });
});
