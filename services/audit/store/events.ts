/** The audit record's table: adding events once, and reading an owner's newest first. */
import type { Clock } from '../../../shared/clock.ts';
import type { Database } from '../../../shared/db.ts';
import { fail } from '../../../shared/errors.ts';
import type { Position } from '../domain/cursor.ts';
import type { Filters } from '../domain/filters.ts';
import type { RecordedEvent } from '../domain/message.ts';
import { recentSince } from '../domain/months.ts';
import { selectEvents, type Stretch } from './select-events.ts';

interface EventRow {
  readonly id: string;
  /** ISO, in the milliseconds that are stored. */
  readonly at: string;
  readonly event: RecordedEvent;
}

export interface ListedEvent {
  readonly position: Position;
  readonly event: RecordedEvent;
}

export interface EventStore {
  /** Adds events; one that is there already stays as it is. Answers how many were new. */
  recordEvents(events: readonly RecordedEvent[]): Promise<number>;
  listEvents(filters: Filters, after: Position | undefined, limit: number): Promise<ListedEvent[]>;
}

type Runs = Pick<Database, 'run'>;

export function openEventStore(database: Runs, clock: Clock): EventStore {
  return {
    recordEvents: (events) => recordEvents(database, events),
    listEvents: (filters, after, limit) => listEvents(database, { filters, after, limit, now: clock() }),
  };
}

/** No partition for a time is a check violation to PostgreSQL; the table has no other check. */
const noPartition = '23514';
/** Retention may drop a partition that was just made for a late event. */
const recordTries = 3;

/** Whether PostgreSQL refuses these very rows, now and ever: data exceptions, constraints, and values past its limits. */
export function isRefusedForGood(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^(22|23|54)/.test(code) && code !== noPartition;
}

/** Promise: an event of any time is taken. Partitions are made ahead, so only one that is late or early by months needs its own made first. */
async function recordEvents(database: Runs, events: readonly RecordedEvent[]): Promise<number> {
  const json = JSON.stringify(events);
  for (let tries = 0; tries < recordTries; tries += 1) {
    try {
      return await insertEvents(database, json);
    } catch (error) {
      if ((error as { code?: unknown }).code !== noPartition) throw error;
    }
    await makePartitions(database, json);
  }
  throw fail('service_unavailable', { retryAfter: 1 });
}

async function insertEvents(database: Runs, json: string): Promise<number> {
  const added = await database.run((sql) => sql`
    insert into events (id, occurred_at, event_type, owner_id, agent_id, target_type, target_id, share_id, event)
    select (e->>'id')::uuid, (e->>'occurredAt')::timestamptz, e->>'eventType', e->>'ownerId', e->>'agentId', e->>'targetType', e->>'targetId', e->>'shareId', e
    from jsonb_array_elements(${json}::text::jsonb) as e
    on conflict (id, occurred_at) do nothing`);
  return added.count;
}

/** The partitions that events of a list need. */
async function makePartitions(database: Runs, json: string): Promise<void> {
  await database.run((sql) => sql`
    select make_event_partition(month) from (
      select distinct date_trunc('month', (e->>'occurredAt')::timestamptz(3), 'UTC') as month from jsonb_array_elements(${json}::text::jsonb) as e
    ) as months order by month`);
}

/**
 * One stretch of an owner's events in the order (occurred_at, id), newest first. Rows never change, so what was there when a walk began
 * is met exactly once. An event that arrives during the walk is met when it lies behind the cursor, which happens to late
 * ones that were sent again after an outage, and is left to the next walk when it lies before; it is never met twice.
 */
async function listEvents(database: Runs, { now, ...page }: Stretch & { now: number }): Promise<ListedEvent[]> {
  // Most pages are full after the newest months; only the others cost the planning and the locks of all partitions.
  const since = recentSince(page.filters, page.after, now);
  const recent = await readEvents(database, { ...page, since });
  const missing = page.limit - recent.length;
  if (missing === 0 || (page.filters.from !== undefined && page.filters.from >= since)) return recent;
  return [...recent, ...(await readEvents(database, { ...page, limit: missing, before: since }))];
}

async function readEvents(database: Runs, stretch: Stretch): Promise<ListedEvent[]> {
  const { text, values } = selectEvents(stretch);
  const rows = await database.run((sql) => sql.unsafe<EventRow[]>(text, values));
  return rows.map((row) => ({ position: { occurredAt: row.at, id: row.id }, event: row.event }));
}
