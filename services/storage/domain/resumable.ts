/** A resumable upload: what its row says, and what may still be done with it (interface chapter: TUS adapter). */
import { fail, failField } from '../../../shared/errors.ts';
import type { NewTransfer } from './transfer.ts';

export interface Resumable extends Omit<NewTransfer, 'id' | 'kind' | 'lane' | 'size' | 'crc32' | 'sha256'> {
  readonly id: string;
  readonly transferId: string;
  /** Null until the sender says it. */
  readonly size: number | null;
  readonly metadata: string | null;
  /** Bytes that are stored. */
  readonly received: number;
  /** Bytes that may be. */
  readonly maxBytes: number;
  /** `expired` from its expiry on, swept or not. */
  readonly state: 'open' | 'completed' | 'aborted' | 'expired';
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** Checks that an upload can be spoken of: one that was ended by its sender is gone, one that ran out of time says so. */
export function checkThere({ state }: Pick<Resumable, 'state'>): void {
  if (state === 'aborted') throw fail('multipart_upload_not_found');
  if (state === 'expired') throw fail('upload_expired');
}

/** Promise: the size is said once, and neither below what is stored nor beyond the plan. */
export function checkNewSize({ state, size, received, maxBytes }: Pick<Resumable, 'state' | 'size' | 'received' | 'maxBytes'>, wanted: number): void {
  if (state === 'completed') throw fail('upload_state_conflict', { detail: 'The upload is completed.' });
  if (size !== null && size !== wanted) throw failField('size', `was said to be ${size}`);
  if (wanted < received) throw failField('size', `must be at least ${received}, which is stored`);
  if (wanted > maxBytes) throw fail('payload_too_large', { detail: `size: must be at most ${maxBytes} bytes`, errors: [{ path: 'size', message: `must be at most ${maxBytes} bytes` }] });
}

export function isWhole({ size, received }: Pick<Resumable, 'size' | 'received'>): boolean {
  return received === size;
}

/** The transfer that an upload becomes. */
export function transferOfResumable({ transferId: id, shareId, planId, ownerId, agentId, filename, mimeType, received: size, release }: Resumable): NewTransfer {
  return { id, shareId, planId, ownerId, agentId, kind: 'file', lane: 'multipart', filename, mimeType, size, crc32: null, sha256: null, release };
}
