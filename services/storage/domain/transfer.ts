/** A transfer as storage knows it, and the rules that need nothing else. */
import type { z } from 'zod';
import type { creator } from '../../../shared/contracts/fields.ts';
import type { HeldRelease, lanes } from '../../../shared/contracts/plans.ts';
import type { Segment } from '../../../shared/blobs/blobs.ts';

export type Creator = z.output<typeof creator>;
export type Lane = (typeof lanes)[number];

/** What a transfer is, and so what its share's type says. */
export type Kind = 'file' | 'folder' | 'pipe';

/** What is known of a transfer before its row exists. */
export interface NewTransfer extends Creator {
  readonly id: string;
  readonly shareId: string;
  readonly planId: string;
  readonly kind: Kind;
  /** How its bytes came; a folder and a pipe are ways of their own. */
  readonly lane: Lane | 'folder' | 'pipe';
  readonly filename: string;
  readonly mimeType: string;
  readonly size: number;
  readonly crc32: number | null;
  readonly sha256: string | null;
  readonly release: HeldRelease;
}

export interface Transfer extends NewTransfer {
  /** The folder that a file is in; null for what has a share of its own. */
  readonly folderId: string | null;
  readonly segments: Segment[] | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly endedAt: Date | null;
}

export interface Content {
  readonly size: number;
  readonly crc32: number;
  readonly sha256?: string | undefined;
}

/** Promise: the single lane sent again with the same plan and the same bytes has the same answer; a plan completes one transfer. */
export function hasContent(transfer: Transfer, { size, crc32, sha256 }: Content): boolean {
  if (transfer.size !== size || transfer.crc32 !== crc32) return false;
  return !transfer.sha256 || !sha256 || transfer.sha256 === sha256;
}
