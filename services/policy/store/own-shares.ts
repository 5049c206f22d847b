/** Shares by their owner: listed newest first, their policy changed, revoked. */
import type { Database, Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { Changes, OwnShare, Whose } from '../domain/own-share.ts';
import type { ShareFilters, SharePosition } from '../domain/share-cursor.ts';
import { isLive, shareColumns } from './shares.ts';

/** One word for where a share stands at this moment, whether or not the sweeper came by. */
const stateOf = (sql: Sql) => sql`
  case when ended_how is not null then ended_how
       when expires_at <= now() then 'expired'
       when ended_at is not null then 'deleted'
       when uses >= max_uses then 'exhausted'
       else 'active' end`;

const bytesUntil = (sql: Sql) => sql`greatest(target_expires_at, expires_at)`;

const ownColumns = (sql: Sql) => sql`
  ${shareColumns(sql)}, ${stateOf(sql)} as state, created_at as "createdAt", ${bytesUntil(sql)} as "targetExpiresAt"`;

const isOf = (sql: Sql, { ownerId, agentId }: Whose) => sql`owner_id = ${ownerId} ${agentId === undefined ? sql`` : sql`and agent_id = ${agentId}`}`;

export interface ShareList {
  readonly whose: Whose;
  readonly filters: ShareFilters;
  readonly after: SharePosition | undefined;
  readonly limit: number;
}

export function ownSharesStore(database: Database) {
  return {
    /** One stretch of a caller's shares in the order (created_at, id), newest first. */
    async listShares({ whose, filters, after, limit }: ShareList): Promise<(OwnShare & { position: SharePosition })[]> {
      const { state, mode, agentId, targetId } = filters;
      const rows = await database.run((sql) => sql<(OwnShare & { exactly: string })[]>`
        select ${ownColumns(sql)}, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as exactly
        from shares
        where ${isOf(sql, whose)}
          ${state === undefined ? sql`` : sql`and ${stateOf(sql)} = ${state}`}
          ${mode === undefined ? sql`` : sql`and mode = ${mode}`}
          ${agentId === undefined ? sql`` : sql`and agent_id = ${agentId}`}
          ${targetId === undefined ? sql`` : sql`and target_id = ${targetId}`}
          ${after === undefined ? sql`` : sql`and (created_at, id) < (${after.createdAt}::text::timestamptz, ${after.id}::text)`}
        order by created_at desc, id desc
        limit ${limit}`);
      return rows.map(({ exactly, ...share }) => ({ ...share, position: { createdAt: exactly, id: share.id } }));
    },

    /** A live share of the caller's own. */
    async findOwnShare(id: string, whose: Whose): Promise<OwnShare | undefined> {
      const rows = await database.run((sql) => sql<OwnShare[]>`
        select ${ownColumns(sql)} from shares where id = ${id} and ${isOf(sql, whose)} and ${isLive(sql)}`);
      return rows[0];
    },

    /**
     * Changes a share, if it still is as the change was checked against: live, its bytes kept as long as its new expiry, and no more
     * uses spent than the new cap has. Fetches that race with it count against the old cap or the new one, never past either.
     */
    async updateShare(id: string, whose: Whose, change: { changes: Changes; keptUntil: Date }, event: DomainEvent): Promise<OwnShare | undefined> {
      const { expiresAt, maxUses, allowedAgentIds, metadata } = change.changes;
      const rows = await database.run((sql) => sql<OwnShare[]>`
        with updated as (
          update shares set
            target_expires_at = greatest(target_expires_at, expires_at, ${change.keptUntil}::timestamptz)
            ${expiresAt === undefined ? sql`` : sql`, expires_at = ${expiresAt}::timestamptz`}
            ${maxUses === undefined ? sql`` : sql`, max_uses = ${maxUses}::bigint`}
            ${allowedAgentIds === undefined ? sql`` : sql`, allowed_agent_ids = ${allowedAgentIds as string[]}::text[]`}
            ${metadata === undefined ? sql`` : sql`, metadata = ${sql.json(metadata)}::jsonb`}
          where id = ${id} and ${isOf(sql, whose)} and ${isLive(sql)}
            ${typeof maxUses === 'number' ? sql`and uses <= ${maxUses}::bigint` : sql``}
          returning *
        ), told as (
          insert into outbox (id, event)
          select ${event.id}::uuid, ${sql.json(event as never)}::jsonb || jsonb_build_object('ownerId', owner_id, 'agentId', agent_id) from updated
        )
        select ${ownColumns(sql)} from updated`);
      return rows[0];
    },

    /** Ends a share of the caller's own, once. Answers whether it is revoked now, by this or before. */
    async revokeShare(id: string, whose: Whose, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with revoked as (
          update shares set ended_at = now(), ended_how = 'revoked'
          where id = ${id} and ${isOf(sql, whose)} and ${isLive(sql)}
          returning id, owner_id, agent_id
        ), told as (
          insert into outbox (id, event)
          select ${event.id}::uuid, ${sql.json(event as never)}::jsonb || jsonb_build_object('ownerId', owner_id, 'agentId', agent_id) from revoked
        )
        select id from revoked`);
      if (rows.length > 0) return true;
      // A statement of its own: who lost the race to revoke it would not see in the same one that it is.
      const before = await database.run((sql) => sql`select from shares where id = ${id} and ${isOf(sql, whose)} and ended_how = 'revoked'`);
      return before.length > 0;
    },
  };
}
