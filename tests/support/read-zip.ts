/** Reads a ZIP archive as strictly as its description goes: the directory, the header in front of each file, and that nothing lies between them. */
import { crc32 } from 'node:zlib';

export interface ZippedFile {
  readonly name: string;
  readonly bytes: Buffer;
  readonly modified: Date;
  readonly mode: number;
}

const most32 = 0xffff_ffff;

/** @throws what is wrong with the archive */
export function readZip(archive: Buffer): ZippedFile[] {
  const { entries, size, offset, end } = readEnd(archive);
  const files: ZippedFile[] = [];
  let at = offset;
  let next = 0;
  for (let index = 0; index < entries; index += 1) {
    const central = readCentral(archive, at);
    check(central.localOffset === next, `entry ${index} begins at ${central.localOffset} and not at ${next}`);
    const { bytes, endsAt } = readLocal(archive, central);
    files.push({ name: central.name, bytes, modified: central.modified, mode: central.mode });
    next = endsAt;
    at = central.endsAt;
  }
  check(next === offset, 'something lies between the files and the directory');
  check(at === offset + size && at === end, 'the directory does not end where the archive says');
  return files;
}

function check(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Error(message);
}

function readEnd(archive: Buffer) {
  const at = archive.length - 22;
  check(archive.readUInt32LE(at) === 0x06054b50 && archive.readUInt16LE(at + 20) === 0, 'there is no end record without a comment');
  const [entries, size, offset] = [archive.readUInt16LE(at + 10), archive.readUInt32LE(at + 12), archive.readUInt32LE(at + 16)];
  check(archive.readUInt16LE(at + 8) === entries, 'the counts of the end record differ');
  if (entries !== 0xffff && size !== most32 && offset !== most32) return { entries, size, offset, end: at };
  const locator = at - 20;
  check(archive.readUInt32LE(locator) === 0x07064b50, 'there is no locator of the 64-bit end record');
  const wide = Number(archive.readBigUInt64LE(locator + 8));
  check(archive.readUInt32LE(wide) === 0x06064b50 && wide + 56 === locator && Number(archive.readBigUInt64LE(wide + 4)) === 44, 'there is no 64-bit end record');
  const read = (from: number) => Number(archive.readBigUInt64LE(wide + from));
  check(read(24) === read(32), 'the counts of the 64-bit end record differ');
  return { entries: read(32), size: read(40), offset: read(48), end: wide };
}

/** The extra fields of a header, by id. */
function extras(bytes: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt16LE(at + 2);
    found.set(bytes.readUInt16LE(at), bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
    check(at <= bytes.length, 'an extra field is longer than its header');
  }
  return found;
}

function readCentral(archive: Buffer, at: number) {
  check(archive.readUInt32LE(at) === 0x02014b50, `there is no entry of the directory at ${at}`);
  const [flags, method, crc] = [archive.readUInt16LE(at + 8), archive.readUInt16LE(at + 10), archive.readUInt32LE(at + 16)];
  check(method === 0 && (flags & ~0x0808) === 0 && (flags & 0x0800) !== 0, 'an entry is not stored under a UTF-8 name');
  let [packed, size, localOffset] = [archive.readUInt32LE(at + 20), archive.readUInt32LE(at + 24), archive.readUInt32LE(at + 42)];
  const [nameLength, extraLength, commentLength] = [archive.readUInt16LE(at + 28), archive.readUInt16LE(at + 30), archive.readUInt16LE(at + 32)];
  const name = archive.toString('utf8', at + 46, at + 46 + nameLength);
  const extra = extras(archive.subarray(at + 46 + nameLength, at + 46 + nameLength + extraLength));
  const wide = extra.get(1);
  if (wide) [size, packed, localOffset] = [0, 8, 16].map((from) => Number(wide.readBigUInt64LE(from))) as [number, number, number];
  check(packed === size, 'a stored entry has two sizes');
  const modified = new Date(extra.get(0x5455)!.readUInt32LE(1) * 1_000);
  const endsAt = at + 46 + nameLength + extraLength + commentLength;
  return { flags, crc, size, localOffset, name, modified, mode: archive.readUInt32LE(at + 38) >>> 16, isWide: wide !== undefined, endsAt };
}

function readLocal(archive: Buffer, { flags, crc, size, localOffset: at, name, isWide }: ReturnType<typeof readCentral>): { bytes: Buffer; endsAt: number } {
  check(archive.readUInt32LE(at) === 0x04034b50, `there is no header at ${at}`);
  check(archive.readUInt16LE(at + 6) === flags && archive.readUInt16LE(at + 8) === 0, 'the header of an entry is not that of the directory');
  const [nameLength, extraLength] = [archive.readUInt16LE(at + 26), archive.readUInt16LE(at + 28)];
  check(archive.toString('utf8', at + 30, at + 30 + nameLength) === name, 'an entry has two names');
  const wide = extras(archive.subarray(at + 30 + nameLength, at + 30 + nameLength + extraLength)).get(1);
  check((wide !== undefined) === isWide, 'an entry is wide in one of two places');
  const isBehind = (flags & 8) !== 0;
  const told = wide ? Number(wide.readBigUInt64LE(0)) : archive.readUInt32LE(at + 22);
  check(isBehind || (told === size && archive.readUInt32LE(at + 14) === crc), 'an entry does not say in front what follows');
  const from = at + 30 + nameLength + extraLength;
  const bytes = archive.subarray(from, from + size);
  check(crc32(bytes) === crc, `the bytes of ${name} are not those of its CRC-32`);
  if (!isBehind) return { bytes, endsAt: from + size };
  const behind = from + size;
  const sizeBehind = isWide ? Number(archive.readBigUInt64LE(behind + 16)) : archive.readUInt32LE(behind + 12);
  check(archive.readUInt32LE(behind) === 0x08074b50 && archive.readUInt32LE(behind + 4) === crc && sizeBehind === size, 'an entry does not say behind what it was');
  return { bytes, endsAt: behind + (isWide ? 24 : 16) };
}
