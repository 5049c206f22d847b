/** Cursors: where a walk through the audit record stands, sealed so that only its own walk can go on from there. */
import { z } from 'zod';
import { openToken, sealToken } from '../../../shared/tokens.ts';
import { digestOf, type Filters } from './filters.ts';

/** The last event that a page showed. The time is the stored value itself, in ISO milliseconds: a rounded one would skip or repeat. */
export interface Position {
  readonly occurredAt: string;
  readonly id: string;
}

const payload = z.strictObject({ t: z.iso.datetime(), i: z.uuid(), f: z.string() });

export function sealCursor(position: Position, filters: Filters, keys: readonly Buffer[]): string {
  return sealToken('cur', { t: position.occurredAt, i: position.id, f: digestOf(filters) }, keys);
}

/** Answers undefined for a forged cursor, and for one of another owner or of other filters. */
export function openCursor(cursor: string, filters: Filters, keys: readonly Buffer[]): Position | undefined {
  const opened = payload.safeParse(openToken('cur', cursor, keys));
  if (!opened.success || opened.data.f !== digestOf(filters)) return undefined;
  return { occurredAt: opened.data.t, id: opened.data.i };
}
