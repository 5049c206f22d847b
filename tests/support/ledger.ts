/** What clients were told during a storm. After it, the exchange is held to every word of it. */
import { createHash } from 'node:crypto';
import type { Reply } from './wire.ts';

/** An acknowledged upload. */
export interface Stored {
  readonly id: string;
  readonly shareId: string;
  readonly deleteToken: string;
  readonly sha256: string;
  readonly lane: 'single' | 'multipart';
  readonly kind: 'open' | 'capped' | 'granted';
  /** Infinity when only the expiry limits it. */
  readonly maxUses: number;
  /** Somebody has begun to delete it, so that not finding it is no surprise. */
  deleting: boolean;
  /** The deletion was acknowledged. */
  deleted: boolean;
  readonly fetches: Fetches;
}

/** How fetches of one share, or with one grant, ended. */
export interface Fetches {
  /** The status 200 came: for certain one use was spent, and no more than one. */
  served: number;
  /** An answer of 5xx: nothing may have stayed spent. */
  failed: number;
  /** No status came: a use may have been spent. */
  unknown: number;
}

export interface Grant {
  readonly token: string;
  readonly stored: Stored;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  readonly fetches: Fetches;
}

export interface Ledger {
  readonly stored: Stored[];
  readonly grants: Grant[];
  /** Answers that no client should ever get, whatever is down. */
  readonly surprises: string[];
  /** When the last change was acknowledged, in milliseconds since 1970. */
  lastChange: number;
}

export function openLedger(): Ledger {
  return { stored: [], grants: [], surprises: [], lastChange: 0 };
}

export const noFetches = (): Fetches => ({ served: 0, failed: 0, unknown: 0 });

/** Counts how a fetch ended. Answers whether bytes were promised to the client. */
export function countFetch(reply: Reply, ...counts: Fetches[]): void {
  for (const fetches of counts) {
    if (reply.status === 200) fetches.served += 1;
    else if (!reply.whole) fetches.unknown += 1;
    else if (reply.status >= 500) fetches.failed += 1;
  }
}

/** Holds a whole answer against those that make sense; 5xx makes sense in a storm. Answers whether it is the first of them. */
export function judge(ledger: Ledger, what: string, reply: Reply, expected: readonly number[]): boolean {
  if (!reply.whole || reply.status >= 500) return false;
  if (!expected.includes(reply.status)) ledger.surprises.push(`${what}: ${reply.status} ${reply.bytes.toString('utf8', 0, 200)}`);
  return reply.status === expected[0];
}

/** Holds the bytes of a whole 200 against what was stored. */
export function checkBytes(ledger: Ledger, stored: Stored, reply: Reply): void {
  if (reply.whole && reply.status === 200 && sha256(reply.bytes) !== stored.sha256) ledger.surprises.push(`${stored.id} came with other bytes`);
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
