/** An append upload: what its row says, and why a writer is refused. */
import { fail, type Failure } from '../../../shared/errors.ts';

export interface Append {
  readonly id: string;
  readonly state: 'open' | 'complete' | 'failed';
  readonly maxBytes: number;
  readonly received: number;
  /** Where the next piece goes, and at which offset of the whole that file begins. Absent before the first writer came. */
  readonly key: string | null;
  readonly keyStart: number | null;
  readonly lease: string | null;
}

/** A piece as its writer reports it. */
export interface Piece {
  readonly id: string;
  readonly lease: string;
  /** Of the whole. */
  readonly offset: number;
  readonly key: string;
  readonly size: number;
}

/** Promise: a piece that was recorded is recorded, however often its writer asks. Only the holder of the lease can have moved the end to there. */
export function isRecorded(append: Append | undefined, { lease, offset, size }: Piece): append is Append {
  return append?.state === 'open' && append.lease === lease && append.received === offset + size;
}

/** Why an append upload did not take a piece or a writer. */
export function refusalOf(append: Append | undefined, wanted: { lease?: string; offset?: number | undefined }): Failure {
  if (!append || append.state !== 'open') return fail('upload_state_conflict', { detail: `The upload is ${append?.state ?? 'gone'}.` });
  if (append.lease !== (wanted.lease ?? null)) return fail('upload_state_conflict', { detail: 'Somebody else is writing.' });
  if (wanted.offset !== undefined && wanted.offset !== append.received) return fail('upload_offset_mismatch', { detail: `${append.received} bytes are stored.` });
  return fail('upload_state_conflict', { detail: 'The bytes were given up.' });
}
