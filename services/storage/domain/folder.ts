/** A folder and its files: who is where, how a file travels, how a list goes on (interface chapter: Folders). */
import { archiveName, nameKey } from '../../../shared/archive-name.ts';
import { fail } from '../../../shared/errors.ts';
import type { Transfer } from './transfer.ts';

/** A folder as its sender filled it so far. */
export interface Folder extends Transfer {
  /** Bytes of a part, and how many go at once, as the folder's plan fixed them. */
  readonly partSize: number;
  readonly maxParallelParts: number;
  /** Bytes of one file. */
  readonly maxFileBytes: number;
}

/** The names under which a file is found again. */
export interface Names {
  /** The last name of the path. */
  readonly filename: string;
  readonly archiveName: string;
  readonly nameKey: string;
  /** The keys of every folder above it: no file may have one of these. */
  readonly parentKeys: string[];
}

/** Bytes that a key may have in the index of its table. */
const longestKey = 2_048;

/** @throws invalid_request for a path whose letters take too much room without case */
export function namesOf(path: string): Names {
  const name = archiveName(path);
  const segments = nameKey(name).split('/');
  const key = segments.join('/');
  if (Buffer.byteLength(key) > longestKey) throw fail('invalid_request', { detail: 'path: is too long', errors: [{ path: 'path', message: 'is too long' }] });
  return {
    filename: path.slice(path.lastIndexOf('/') + 1), archiveName: name, nameKey: key,
    parentKeys: segments.slice(1).map((_segment, index) => segments.slice(0, index + 1).join('/')),
  };
}

/** As many as a part number can name. */
const maxParts = 10_000;

/** How a file of this size travels. An empty one has no parts. */
export function geometryOf({ partSize: usual, maxFileBytes }: Folder, size: number): { partSize: number; partCount: number } {
  if (size > maxFileBytes) throw fail('payload_too_large', { detail: `size: must be at most ${maxFileBytes} bytes`, errors: [{ path: 'size', message: `must be at most ${maxFileBytes} bytes` }] });
  const partSize = Math.max(usual, Math.ceil(size / maxParts));
  return { partSize, partCount: Math.ceil(size / partSize) };
}

/** Where a list goes on: behind a place. It opens nothing, so nothing is lost by one that is made up. */
export function sealCursor(place: number): string {
  return Buffer.from(String(place)).toString('base64url');
}

/** @throws invalid_cursor */
export function openCursor(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const place = Number(Buffer.from(cursor, 'base64url').toString('utf8'));
  if (!(Number.isInteger(place) && place > 0 && place < 2 ** 31) || sealCursor(place) !== cursor) throw fail('invalid_cursor');
  return place;
}
