/** A multipart upload: its geometry, its state, and when its parts make a whole (interface chapter: Native multipart lane). */
import type { Segment } from '../../../shared/blobs/blobs.ts';
import { fail, failField, type FieldError } from '../../../shared/errors.ts';
import type { NewTransfer } from './transfer.ts';

export const uploadStates = ['initialized', 'assembling', 'completing', 'completed', 'aborted', 'expired'] as const;
export type UploadState = (typeof uploadStates)[number];

export interface Upload extends Omit<NewTransfer, 'id' | 'kind' | 'lane' | 'crc32'> {
  readonly id: string;
  readonly lane: 'multipart' | 'direct';
  readonly transferId: string;
  /** Whether every request of this upload must carry its plan. */
  readonly planBound: boolean;
  readonly partSize: number;
  readonly partCount: number;
  readonly maxParallelParts: number;
  /** The file in which every part has its place. */
  readonly mainKey: string;
  /** The session of the object store in which the main file is put together. */
  readonly session: string | null;
  /** Whether the store has done so: parts that come after it have files of their own. */
  readonly sealed: boolean;
  /** `expired` from its expiry on, swept or not. */
  readonly state: UploadState;
  /** Grows with every recorded part. */
  readonly partsVersion: number;
  readonly requestDigest: string;
  readonly expiresAt: Date;
}

export interface Part {
  readonly partNumber: number;
  readonly key: string;
  readonly size: number;
  /** Absent of a part that we have not seen: it went straight to the object store. */
  readonly sha256: string | null;
  /** What the object store calls it. */
  readonly etag: string | null;
  /** Where it begins in the main file, once the object store has put that together. */
  readonly place: number | null;
}

/** The etag that a part is answered with. */
export function etagOf({ sha256, etag }: Pick<Part, 'sha256' | 'etag'>): string {
  return sha256?.slice(0, 32) ?? etag ?? '';
}

/** The state as the interface names it. */
export function shownState(state: UploadState): Exclude<UploadState, 'assembling'> {
  return state === 'assembling' ? 'completing' : state;
}

/** Checks that parts may still come. */
export function checkOpen({ state }: Pick<Upload, 'state'>): void {
  if (state === 'expired') throw fail('upload_expired');
  if (state !== 'initialized') throw fail('upload_state_conflict', { detail: `The upload is ${shownState(state)}.` });
}

type Geometry = Pick<Upload, 'size' | 'partSize' | 'partCount'>;

/** Promise: every part but the last has exactly `partSize` bytes, the last one the remainder. */
export function sizeOfPart({ size, partSize, partCount }: Geometry, partNumber: number): number {
  if (partNumber > partCount) throw failField('partNumber', `must be at most ${partCount}`);
  return partNumber < partCount ? partSize : size - partSize * (partCount - 1);
}

/** Where in its file an attempt at a part is written: at its place in the main file, or at the start of a file of its own. */
export function offsetOfPart({ mainKey, partSize }: Pick<Upload, 'mainKey' | 'partSize'>, part: Pick<Part, 'key' | 'partNumber'> & Partial<Pick<Part, 'place'>>): number {
  return part.key === mainKey ? part.place ?? (part.partNumber - 1) * partSize : 0;
}

/**
 * Checks that the parts make the whole.
 * @param listed the parts as the client lists them, each with the etag it was answered with
 * @throws invalid_request that names missing or wrong parts, part_size_mismatch
 */
export function checkParts(upload: Geometry, parts: readonly Part[], listed?: readonly { partNumber: number; etag: string }[]): void {
  const stored = new Map(parts.map((part) => [part.partNumber, part]));
  const errors = [...missingParts(upload, stored), ...(listed ? wrongParts(upload, stored, listed) : [])];
  if (errors.length > 0) throw fail('invalid_request', { detail: `${errors[0]!.path}: ${errors[0]!.message}`, errors: errors.slice(0, 20) });
  const badSize = parts.find((part) => part.size !== sizeOfPart(upload, part.partNumber));
  if (badSize) throw fail('part_size_mismatch', { detail: `Part ${badSize.partNumber} has ${badSize.size} bytes.` });
}

function missingParts({ partCount }: Geometry, stored: ReadonlyMap<number, Part>): FieldError[] {
  const errors: FieldError[] = [];
  for (let number = 1; number <= partCount && errors.length < 20; number += 1) {
    if (!stored.has(number)) errors.push({ path: 'parts', message: `part ${number} has not been uploaded` });
  }
  return errors;
}

function wrongParts({ partCount }: Geometry, stored: ReadonlyMap<number, Part>, listed: readonly { partNumber: number; etag: string }[]): FieldError[] {
  const named = new Map(listed.map((part) => [part.partNumber, part]));
  const wrong = listed.flatMap(({ partNumber, etag }, index) => {
    const part = stored.get(partNumber);
    return part && etagOf(part) === etag.replaceAll('"', '') ? [] : [{ path: `parts.${index}`, message: `part ${partNumber} is not stored with this etag` }];
  });
  if (named.size === partCount && listed.length === partCount) return wrong;
  return [...wrong, { path: 'parts', message: `must name each of the ${partCount} parts once` }];
}

/** What a session of an object store takes: parts of this size and more, the last one excepted. */
const smallestSessionPart = 5 * 1_024 ** 2;

/** Whether the parts go into a session of an object store; otherwise each is an object of its own. */
export function fitsSession({ partSize, partCount, lane }: Pick<Upload, 'partSize' | 'partCount' | 'lane'>): boolean {
  return lane === 'direct' || (partCount > 1 && partSize >= smallestSessionPart);
}

/** The parts that a session makes one object of, in their order, each with its place in that object. What was sent a second time is not among them. */
export function partsInSession({ mainKey }: Pick<Upload, 'mainKey'>, parts: readonly Part[]): { partNumber: number; size: number; etag: string; place: number }[] {
  let place = 0;
  return parts.filter(({ key }) => key === mainKey).sort((a, b) => a.partNumber - b.partNumber).map(({ partNumber, size, etag }) => {
    const part = { partNumber, size, etag: etag ?? '', place };
    place += size;
    return part;
  });
}

/** The pieces of files that hold the whole, in order, neighbours in one file as one piece. */
export function segmentsOf(upload: Pick<Upload, 'mainKey' | 'partSize'>, parts: readonly Part[]): Segment[] {
  const segments: Segment[] = [];
  for (const part of [...parts].sort((a, b) => a.partNumber - b.partNumber)) {
    const offset = offsetOfPart(upload, part);
    const last = segments.at(-1);
    if (last && last.key === part.key && last.offset + last.size === offset) segments[segments.length - 1] = { ...last, size: last.size + part.size };
    else segments.push({ key: part.key, offset, size: part.size });
  }
  return segments;
}
