/** The part of a statement that writes its events to the outbox. */
import type { Sql } from './db.ts';
import type { DomainEvent } from './events.ts';

/** Each event once for each row of `changed`: none when nothing changed. */
export function tell(sql: Sql, changed: string, ...events: DomainEvent[]) {
  return sql`
    insert into outbox (id, event)
    select (told_event->>'id')::uuid, told_event
    from ${sql(changed)}, jsonb_array_elements(${sql.json(events as never)}::jsonb) told_event`;
}

/** One event for each row of `changed`, which has event_id, owner_id, agent_id, target_type, transfer_id, share_id and data. */
export function tellEach(sql: Sql, changed: string, event: DomainEvent) {
  return sql`
    insert into outbox (id, event)
    select event_id, ${sql.json(event as never)}::jsonb || jsonb_build_object(
      'id', event_id, 'ownerId', owner_id, 'agentId', agent_id, 'targetType', target_type, 'targetId', transfer_id, 'shareId', share_id, 'data', data)
    from ${sql(changed)}`;
}
