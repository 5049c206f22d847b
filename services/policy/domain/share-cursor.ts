/** Cursors: where a walk through a caller's shares stands, sealed so that only its own walk can go on from there. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { openToken, sealToken } from '../../../shared/tokens.ts';
import type { ShareState, Whose } from './own-share.ts';

/** Which of a caller's shares a list shows. */
export interface ShareFilters {
  readonly state?: ShareState | undefined;
  readonly mode?: 'open' | 'agent' | undefined;
  readonly agentId?: string | undefined;
  readonly targetId?: string | undefined;
}

/** The last share that a page showed. The time is the stored value in microseconds: a rounded one would skip or repeat. */
export interface SharePosition {
  readonly createdAt: string;
  readonly id: string;
}

const payload = z.strictObject({ t: z.iso.datetime({ precision: 6 }), i: z.string(), f: z.string() });

export function sealShareCursor(position: SharePosition, walk: Walk, keys: readonly Buffer[]): string {
  return sealToken('cur', { t: position.createdAt, i: position.id, f: digestOf(walk) }, keys);
}

/** Answers undefined for a forged cursor, and for one of another caller or of other filters. */
export function openShareCursor(cursor: string, walk: Walk, keys: readonly Buffer[]): SharePosition | undefined {
  const opened = payload.safeParse(openToken('cur', cursor, keys));
  if (!opened.success || opened.data.f !== digestOf(walk)) return undefined;
  return { createdAt: opened.data.t, id: opened.data.i };
}

export interface Walk {
  readonly whose: Whose;
  readonly filters: ShareFilters;
}

function digestOf({ whose, filters }: Walk): string {
  const { state, mode, agentId, targetId } = filters;
  const spelling = JSON.stringify([whose.ownerId, whose.agentId, state, mode, agentId, targetId]);
  return createHash('sha256').update(spelling).digest('base64url').slice(0, 22);
}
