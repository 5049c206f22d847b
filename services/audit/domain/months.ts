/** Months of the audit record, in UTC: which partitions a walk looks at first, which are made ahead, which have served their time. */
import type { Position } from './cursor.ts';
import type { Filters } from './filters.ts';

const dayMs = 86_400_000;

/** The first moment of a month, so many months after that of `time`. */
export function monthAt(time: number, months: number): string {
  const date = new Date(time);
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1)).toISOString();
}

/** Where the two newest months begin of those that a page may show. */
export function recentSince(filters: Filters, after: Position | undefined, now: number): string {
  const newest = Math.min(now, ...[filters.to, after?.occurredAt].flatMap((time) => (time === undefined ? [] : [Date.parse(time)])));
  return monthAt(Math.max(newest, 0), -1);
}

/** The months that must have a partition although nothing of the later ones has happened yet. */
export function monthsAhead(now: number): string[] {
  return [0, 1, 2].map((months) => monthAt(now, months));
}

/** What happened before this is dropped; undefined when everything is kept. */
export function keptSince(now: number, retentionDays: number): string | undefined {
  return retentionDays === 0 ? undefined : new Date(Math.max(now - retentionDays * dayMs, 0)).toISOString();
}
