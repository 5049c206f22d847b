/** The one query of the audit record, as text and values; a test asks PostgreSQL to explain it. */
import type { Position } from '../domain/cursor.ts';
import type { Filters } from '../domain/filters.ts';

export interface Stretch {
  readonly filters: Filters;
  /** The event before the first. */
  readonly after?: Position | undefined;
  /** Inclusive, and exclusive: the part of the table that is looked at. */
  readonly since?: string;
  readonly before?: string;
  readonly limit: number;
}

export interface Statement {
  readonly text: string;
  readonly values: string[];
}

/**
 * Every query has an index that is in its order. To collect and sort instead looks cheaper where two filters are thought to have little in common,
 * and reads millions where they have much; so it is no choice. Seldom is known of values only, so plans are not kept.
 */
export const readInOrder = { enable_sort: 'off', enable_incremental_sort: 'off', enable_bitmapscan: 'off', enable_seqscan: 'off', plan_cache_mode: 'force_custom_plan' } as const;

const columns = { ownerId: 'owner_id', eventType: 'event_type', agentId: 'agent_id', targetType: 'target_type', targetId: 'target_id', shareId: 'share_id' } as const;

/** Partitions that a time rules out are not touched, and those that are left are read in their order until the limit is met. */
export function selectEvents({ filters, after, since, before, limit }: Stretch): Statement {
  const values: string[] = [];
  const conditions: string[] = [];
  const value = (given: string) => `$${values.push(given)}`;
  const time = (comparison: string, given: string | undefined) => {
    if (given !== undefined) conditions.push(`occurred_at ${comparison} ${value(given)}::timestamptz`);
  };
  for (const [field, column] of Object.entries(columns)) {
    const wanted = filters[field as keyof typeof columns];
    if (wanted !== undefined) conditions.push(`${column} = ${value(wanted)}`);
  }
  time('>=', filters.from);
  time('<', filters.to);
  time('>=', since);
  time('<', before);
  // A comparison of rows alone rules out no partition.
  time('<=', after?.occurredAt);
  if (after) conditions.push(`(occurred_at, id) < (${value(after.occurredAt)}::timestamptz, ${value(after.id)}::uuid)`);
  const text = `select id, to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, event from events where ${conditions.join(' and ')} order by occurred_at desc, id desc limit ${Math.trunc(limit)}`;
  return { text, values };
}
