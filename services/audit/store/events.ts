/** The audit record's table: adding events once, and reading an owner's newest first. */
import type { Database } from '../../../shared/db.ts';
import type { Position } from '../domain/cursor.ts';
import type { Filters } from '../domain/filters.ts';
import type { RecordedEvent } from '../domain/message.ts';

interface EventRow {
  readonly id: string;
  readonly occurred_at: Date;
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

export function openEventStore(database: Pick<Database, 'run'>): EventStore {
  return {
    recordEvents: (events) => recordEvents(database, events),
    listEvents: (filters, after, limit) => listEvents(database, filters, after, limit),
  };
}

/** Whether PostgreSQL refuses these very rows, now and ever: data exceptions, constraints, and values past its limits. */
export function isRefusedForGood(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^(22|23|54)/.test(code);
}

async function recordEvents(database: Pick<Database, 'run'>, events: readonly RecordedEvent[]): Promise<number> {
  const json = JSON.stringify(events);
  const added = await database.run((sql) => sql`
    insert into events (id, occurred_at, event_type, owner_id, agent_id, target_type, target_id, share_id, event)
    select (e->>'id')::uuid, (e->>'occurredAt')::timestamptz, e->>'eventType', e->>'ownerId', e->>'agentId', e->>'targetType', e->>'targetId', e->>'shareId', e
    from jsonb_array_elements(${json}::text::jsonb) as e
    on conflict (id) do nothing`);
  return added.count;
}

/**
 * One stretch of an owner's events in the order (occurred_at, id), newest first. Rows never change or go, so what was there when a
 * walk began is met exactly once. An event that arrives during the walk is met when it lies behind the cursor, which happens to late
 * ones that were sent again after an outage, and is left to the next walk when it lies before; it is never met twice.
 */
async function listEvents(database: Pick<Database, 'run'>, filters: Filters, after: Position | undefined, limit: number): Promise<ListedEvent[]> {
  const { ownerId, eventType, agentId, targetType, targetId, shareId, from, to } = filters;
  const rows = await database.run((sql) => sql<EventRow[]>`
    select id, occurred_at, event from events
    where owner_id = ${ownerId}
      ${eventType === undefined ? sql`` : sql`and event_type = ${eventType}`}
      ${agentId === undefined ? sql`` : sql`and agent_id = ${agentId}`}
      ${targetType === undefined ? sql`` : sql`and target_type = ${targetType}`}
      ${targetId === undefined ? sql`` : sql`and target_id = ${targetId}`}
      ${shareId === undefined ? sql`` : sql`and share_id = ${shareId}`}
      ${from === undefined ? sql`` : sql`and occurred_at >= ${from}::timestamptz`}
      ${to === undefined ? sql`` : sql`and occurred_at < ${to}::timestamptz`}
      ${after === undefined ? sql`` : sql`and (occurred_at, id) < (${after.occurredAt}::timestamptz, ${after.id}::uuid)`}
    order by occurred_at desc, id desc
    limit ${limit}`);
  return rows.map((row) => ({ position: { occurredAt: row.occurred_at.toISOString(), id: row.id }, event: row.event }));
}
