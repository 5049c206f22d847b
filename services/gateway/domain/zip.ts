/**
 * The parts of a ZIP archive whose files are stored as they are (APPNOTE 6.3.10). Every size is known before the first byte, so an archive says its
 * length, and each entry says in front what follows: readers that take archives as streams can read it too.
 */

export interface ZipEntry {
  readonly name: string;
  readonly size: number;
  /** Undefined where it is known only behind the file's bytes. */
  readonly crc32?: number | undefined;
  /** Milliseconds since 1970. */
  readonly modified: number;
}

/** What an archive will hold, by the sums over its entries. */
export interface ZipFacts {
  readonly entries: number;
  readonly bytes: number;
  readonly nameBytes: number;
  /** Entries whose CRC-32 is not known in front. */
  readonly unchecked: number;
}

export interface ZipLayout {
  readonly size: number;
  /** Sizes and offsets in 64 bits: where the archive has 4 GiB, for each of its entries, so that they all take the same room. */
  readonly isWide: boolean;
}

const most32 = 0xffff_ffff;
const most16 = 0xffff;

/** Extended timestamp: the time in UTC, where the time of MS-DOS is anybody's. */
const timeExtra = 9;
const isUtf8 = 0x0800;
const hasDescriptor = 0x0008;
const versionOf = (isWide: boolean) => (isWide ? 45 : 20);
/** Made on Unix, so that readers take the mode: a plain file that others may read. */
const madeBy = (3 << 8) | 45;
const plainFile = (0o100644 << 16) >>> 0;

const localSize = (isWide: boolean) => 30 + timeExtra + (isWide ? 20 : 0);
const centralSize = (isWide: boolean) => 46 + timeExtra + (isWide ? 28 : 0);
const descriptorSize = (isWide: boolean) => (isWide ? 24 : 16);
const endSize = (isLong: boolean) => 22 + (isLong ? 56 + 20 : 0);
const isLong = (entries: number, isWide: boolean) => isWide || entries >= most16;

/** How long an archive will be, and in which of the two formats. */
export function layOut({ entries, bytes, nameBytes, unchecked }: ZipFacts): ZipLayout {
  const sizeIn = (isWide: boolean) =>
    entries * (localSize(isWide) + centralSize(isWide)) + 2 * nameBytes + bytes + unchecked * descriptorSize(isWide) + endSize(isLong(entries, isWide));
  const isWide = sizeIn(false) >= most32;
  return { size: sizeIn(isWide), isWide };
}

/** Bytes that an entry takes in front of the directory. */
export function sizeOfEntry({ name, size, crc32 }: ZipEntry, isWide: boolean): number {
  return localSize(isWide) + Buffer.byteLength(name) + size + (crc32 === undefined ? descriptorSize(isWide) : 0);
}

/** Little-endian fields one after the other: [bytes, value]. */
function fields(...values: readonly (readonly [1 | 2 | 4 | 8, number])[]): Buffer {
  const buffer = Buffer.alloc(values.reduce((sum, [width]) => sum + width, 0));
  let at = 0;
  for (const [width, value] of values) {
    if (width === 8) buffer.writeBigUInt64LE(BigInt(value), at);
    else buffer.writeUIntLE(value, at, width);
    at += width;
  }
  return buffer;
}

/** Time and date of MS-DOS, in UTC: two seconds are its smallest step, 1980 its first year and 2107 its last. */
function dosTime(modified: number): number {
  const date = new Date(modified);
  const year = date.getUTCFullYear();
  if (year < 1980 || year > 2107) return (1 << 21) | (1 << 16);
  const day = ((year - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate();
  const time = (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1);
  return ((day << 16) | time) >>> 0;
}

const timeOf = ({ modified }: ZipEntry) => fields([2, 0x5455], [2, 5], [1, 1], [4, Math.floor(modified / 1_000) & 0x7fff_ffff]);

/** What stands in front of a file's bytes. */
export function localHeader(entry: ZipEntry, isWide: boolean): Buffer {
  const name = Buffer.from(entry.name);
  const known = entry.crc32 === undefined ? { crc32: 0, size: 0 } : { crc32: entry.crc32, size: entry.size };
  const size = isWide ? most32 : known.size;
  return Buffer.concat([
    fields(
      [4, 0x04034b50], [2, versionOf(isWide)], [2, flagsOf(entry)], [2, 0], [4, dosTime(entry.modified)],
      [4, known.crc32], [4, size], [4, size], [2, name.length], [2, timeExtra + (isWide ? 20 : 0)],
    ),
    name,
    ...(isWide ? [fields([2, 0x0001], [2, 16], [8, known.size], [8, known.size])] : []),
    timeOf(entry),
  ]);
}

const flagsOf = ({ crc32 }: ZipEntry) => isUtf8 | (crc32 === undefined ? hasDescriptor : 0);

/** What stands behind a file's bytes where its CRC-32 was not known in front. */
export function descriptor({ crc32, size }: { crc32: number; size: number }, isWide: boolean): Buffer {
  const width = isWide ? 8 : 4;
  return fields([4, 0x08074b50], [4, crc32], [width, size], [width, size]);
}

/** An entry of the directory. `crc32`: of an entry that did not know it in front. */
export function centralHeader(entry: ZipEntry, { offset, crc32, isWide }: { offset: number; crc32: number; isWide: boolean }): Buffer {
  const name = Buffer.from(entry.name);
  const narrow = (value: number) => (isWide ? most32 : value);
  return Buffer.concat([
    fields(
      [4, 0x02014b50], [2, madeBy], [2, versionOf(isWide)], [2, flagsOf(entry)], [2, 0], [4, dosTime(entry.modified)],
      [4, crc32], [4, narrow(entry.size)], [4, narrow(entry.size)], [2, name.length], [2, timeExtra + (isWide ? 28 : 0)],
      [2, 0], [2, 0], [2, 0], [4, plainFile], [4, narrow(offset)],
    ),
    name,
    ...(isWide ? [fields([2, 0x0001], [2, 24], [8, entry.size], [8, entry.size], [8, offset])] : []),
    timeOf(entry),
  ]);
}

/** The end of an archive: where its directory is. */
export function endRecords({ entries, offset, size, isWide }: { entries: number; offset: number; size: number; isWide: boolean }): Buffer {
  const isLongOne = isLong(entries, isWide);
  const count = isLongOne ? most16 : entries;
  const end = fields([4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, isLongOne ? most32 : size], [4, isLongOne ? most32 : offset], [2, 0]);
  if (!isLongOne) return end;
  return Buffer.concat([
    fields([4, 0x06064b50], [8, 44], [2, madeBy], [2, 45], [4, 0], [4, 0], [8, entries], [8, entries], [8, size], [8, offset]),
    fields([4, 0x07064b50], [4, 0], [8, offset + size], [4, 1]),
    end,
  ]);
}
