/** Standing permissions: recorded, listed and revoked. Nothing that decides reads them. */
import type { Database, Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { Permission } from '../domain/permission.ts';
import type { Operation } from '../../../shared/operation.ts';
import { withRowAnswer } from './answers.ts';
import { isoTime } from './iso-time.ts';

export type NewPermission = Pick<Permission, 'id' | 'ownerId' | 'scopes' | 'constraints' | 'audit'> & {
  readonly fromAgentId: string;
  readonly toAgentId: string;
  readonly expiresAt: Date | null;
};

/** The permission of the row that is called `p`; what is not set is left out. */
const recordOf = (sql: Sql) => sql`json_strip_nulls(json_build_object(
  'id', p.id, 'ownerId', p.owner_id,
  'from', json_build_object('type', 'agent', 'agentId', p.from_agent_id), 'to', json_build_object('type', 'agent', 'agentId', p.to_agent_id),
  'scopes', p.scopes, 'constraints', p.constraints,
  'createdAt', ${isoTime(sql, 'p.created_at')}, 'updatedAt', ${isoTime(sql, 'p.updated_at')},
  'expiresAt', ${isoTime(sql, 'p.expires_at')}, 'revokedAt', ${isoTime(sql, 'p.revoked_at')}, 'audit', p.audit, 'version', p.version))`;

export function permissionsStore(database: Database) {
  return {
    /** Records a permission. Answers undefined when the giving agent is not one of this owner. */
    async createPermission(made: NewPermission, event: DomainEvent, operation?: Operation): Promise<Permission | undefined> {
      const rows = await database.run((sql) => sql<{ permission: Permission }[]>`
        with changed as (
          insert into standing_permissions (id, owner_id, from_agent_id, to_agent_id, scopes, constraints, expires_at, audit)
          select ${made.id}::text, owner_id, agent_id, ${made.toAgentId}::text, ${sql.json(made.scopes as never)}::jsonb,
                 ${sql.json(made.constraints as never)}::jsonb, ${made.expiresAt}::timestamptz, ${sql.json(made.audit as never)}::jsonb
          from agents where agent_id = ${made.fromAgentId} and owner_id = ${made.ownerId}
          returning *
        ), told as (
          insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from changed
        )${withRowAnswer(sql, operation, 'changed', sql`select ${recordOf(sql)} from changed p`)}
        select ${recordOf(sql)} as permission from changed p`);
      return rows[0]?.permission;
    },

    async listPermissions(ownerId: string, limit: number): Promise<Permission[]> {
      const rows = await database.run((sql) => sql<{ permission: Permission }[]>`
        select ${recordOf(sql)} as permission from standing_permissions p where owner_id = ${ownerId} order by created_at desc, id limit ${limit}`);
      return rows.map(({ permission }) => permission);
    },

    async findPermission(id: string, ownerId: string): Promise<Permission | undefined> {
      const rows = await database.run((sql) => sql<{ permission: Permission }[]>`
        select ${recordOf(sql)} as permission from standing_permissions p where id = ${id} and owner_id = ${ownerId}`);
      return rows[0]?.permission;
    },

    /** Revokes a permission of this owner. One that was revoked before stays as it was. */
    async revokePermission(id: string, ownerId: string, audit: Partial<Permission['audit']>, event: DomainEvent): Promise<void> {
      await database.run((sql) => sql`
        with revoked as (
          update standing_permissions
          set revoked_at = clock_timestamp(), updated_at = clock_timestamp(), version = version + 1, audit = audit || ${sql.json(audit as never)}::jsonb
          where id = ${id} and owner_id = ${ownerId} and revoked_at is null
          returning from_agent_id, to_agent_id
        )
        insert into outbox (id, event)
        select ${event.id}::uuid, ${sql.json(event as never)}::jsonb
          || jsonb_build_object('agentId', from_agent_id, 'data', jsonb_build_object('toAgentId', to_agent_id))
        from revoked`);
    },
  };
}
