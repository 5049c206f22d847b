/** Shares: made once for each target, read by id, ended with their transfer or at their expiry. */
import type { Database, Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { Share } from '../domain/share.ts';
import { withAnswer, type SealedAnswer } from './answers.ts';

export const shareColumns = (sql: Sql) => sql`
  id, target_type as "targetType", target_id as "targetId", filename, mime_type as "mimeType", size, mode,
  allowed_agent_ids as "allowedAgentIds", max_uses as "maxUses", uses, metadata,
  owner_id as "ownerId", agent_id as "agentId", expires_at as "expiresAt", passcode_hash as "passcodeHash"`;

/** Neither ended nor past its expiry: at that second it is gone, whether or not the sweeper came by. */
export const isLive = (sql: Sql) => sql`ended_at is null and expires_at > now()`;

export function sharesStore(database: Database) {
  return {
    /** Creates the share of a target. A second time changes nothing and tells nothing. */
    async createShare(share: Omit<Share, 'uses'>, event: DomainEvent): Promise<void> {
      await database.run((sql) => sql`
        with made as (
          insert into shares ${sql({
            id: share.id, target_type: share.targetType, target_id: share.targetId,
            filename: share.filename, mime_type: share.mimeType, size: share.size,
            mode: share.mode, allowed_agent_ids: share.allowedAgentIds as string[], max_uses: share.maxUses,
            metadata: sql.json(share.metadata) as never, owner_id: share.ownerId, agent_id: share.agentId, expires_at: share.expiresAt, passcode_hash: share.passcodeHash,
          })}
          on conflict do nothing
          returning id
        )
        insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from made`);
    },

    /** A live share. */
    async findShare(id: string): Promise<Share | undefined> {
      const rows = await database.run((sql) => sql<Share[]>`select ${shareColumns(sql)} from shares where id = ${id} and ${isLive(sql)}`);
      return rows[0];
    },

    /** The live share of a target. */
    async findShareOfTarget(targetId: string): Promise<Share | undefined> {
      const rows = await database.run((sql) => sql<Share[]>`select ${shareColumns(sql)} from shares where target_id = ${targetId} and ${isLive(sql)}`);
      return rows[0];
    },

    /** What a grant for a share once stated, for the replay of its answer: it outlives the share. */
    async findTarget(id: string): Promise<Pick<Share, 'targetType' | 'targetId'> | undefined> {
      const rows = await database.run((sql) => sql<Pick<Share, 'targetType' | 'targetId'>[]>`
        select target_type as "targetType", target_id as "targetId" from shares where id = ${id}`);
      return rows[0];
    },

    /** Records that a grant was issued, if the share still allows this agent. The grant itself is in its token alone. */
    async issueGrant(grant: { shareId: string; agentId: string }, event: DomainEvent, sealed?: SealedAnswer): Promise<Share | undefined> {
      const rows = await database.run((sql) => sql<Share[]>`
        with share as (
          select * from shares
          where id = ${grant.shareId} and ${isLive(sql)} and mode = 'agent'
            and ${grant.agentId} = any(allowed_agent_ids) and (max_uses is null or uses < max_uses)
        ), told as (
          insert into outbox (id, event)
          select ${event.id}::uuid, ${sql.json(event as never)}::jsonb || jsonb_build_object('ownerId', owner_id) from share
        )${withAnswer(sql, sealed, 'share')}
        select ${shareColumns(sql)} from share`);
      return rows[0];
    },

    /** Ends the shares of deleted targets. Answers how many were still live. */
    async endShares(targetIds: readonly string[], event: DomainEvent): Promise<number> {
      return endAndTell(database, event, { how: 'deleted', which: (sql) => sql`target_id = any(${targetIds as string[]})` });
    },

    /** Ends shares that are past their expiry, a batch at a time. */
    async expireShares(event: DomainEvent): Promise<number> {
      return endAndTell(database, event, { how: 'expired', which: (sql) => sql`
        id in (select id from shares where ended_at is null and expires_at <= now() order by expires_at limit 500 for update skip locked)` });
    },

    /** Forgets shares that ended long ago. One whose bytes are still there stays: an upload that is sent again must not bring it back to life. */
    async purgeShares(): Promise<void> {
      await database.run((sql) => sql`
        delete from shares where id in (
          select id from shares
          where ended_at < now() - interval '48 hours' and (ended_how = 'deleted' or greatest(target_expires_at, expires_at) < now() - interval '48 hours')
          limit 500)`);
    },
  };
}

interface Ending {
  readonly how: 'expired' | 'deleted';
  readonly which: (sql: Sql) => ReturnType<typeof isLive>;
}

/** Ends shares and tells one event for each, with an id of its own. */
async function endAndTell(database: Database, event: DomainEvent, { how, which }: Ending): Promise<number> {
  const rows = await database.run((sql) => sql`
    with ended as (
      update shares set ended_at = now(), ended_how = ${how} where ended_at is null and ${which(sql)}
      returning id, owner_id, gen_random_uuid() as event_id
    ), told as (
      insert into outbox (id, event)
      select event_id, ${sql.json(event as never)}::jsonb || jsonb_build_object('id', event_id, 'ownerId', owner_id, 'targetId', id, 'shareId', id)
      from ended
    )
    select id from ended`);
  return rows.length;
}
