/** Uses and grants as fetches spend them. The database settles every race: one guarded statement each. */
import { isDuplicate, type Database, type Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { Share } from '../domain/share.ts';
import { isLive } from './shares.ts';

interface OpenFetch {
  readonly fetchId: string;
  readonly shareId: string;
  readonly targetId: string;
  /** What the passcode of this fetch was checked against. A share that has another one lets nothing through. */
  readonly passcodeHash?: string | null;
}

export interface GrantFetch extends OpenFetch {
  readonly grantId: string;
  readonly agentId: string;
}

/** The share after a fetch was let through. */
interface Spent {
  readonly ownerId: string | null;
  readonly maxUses: number | null;
  readonly uses: number;
}

/** What an open fetch found: `uses` is null where nothing was spent. */
interface OpenSpending {
  readonly targetType: Share['targetType'];
  readonly mode: 'open' | 'agent';
  readonly ownerId: string | null;
  readonly maxUses: number | null;
  readonly uses: number | null;
  readonly passcodeHash: string | null;
}

export type GrantSpending = Spent | 'grant_already_used' | 'fetch_returned' | 'refused';

const isOpenTo = (sql: Sql, { passcodeHash }: OpenFetch) => sql`passcode_hash is not distinct from ${passcodeHash ?? null}::text`;

/** The events of a spending; `share.exhausted` is told only by the fetch that spent the last use. */
const tellSpending = (sql: Sql, events: readonly DomainEvent[]) => sql`
  insert into outbox (id, event)
  select (e->>'id')::uuid, e || jsonb_build_object('ownerId', share.owner_id)
    || case when e->>'eventType' = 'transfer.fetched' then jsonb_build_object('targetType', share.target_type) else '{}' end
  from spent share, jsonb_array_elements(${sql.json(events as never)}::jsonb) e
  where e->>'eventType' <> 'share.exhausted' or share.uses = share.max_uses`;

export function fetchesStore(database: Database) {
  return {
    /** Lets a fetch of an open share through, spending a use when the share has a cap. Answers undefined when there is no such live share. */
    async spendOpenUse(fetch: OpenFetch, events: readonly DomainEvent[]): Promise<OpenSpending | undefined | 'fetch_returned'> {
      const spending = database.run((sql) => sql<OpenSpending[]>`
        with found as (
          select id, target_type, mode, owner_id, max_uses, passcode_hash from shares
          where id = ${fetch.shareId} and target_id = ${fetch.targetId} and ${isLive(sql)}
        ), spent as (
          update shares set uses = uses + 1
          where id = ${fetch.shareId} and target_id = ${fetch.targetId} and ${isLive(sql)}
            and mode = 'open' and max_uses is not null and uses < max_uses and ${isOpenTo(sql, fetch)}
          returning id, target_type, owner_id, max_uses, uses
        ), recorded as (
          insert into fetches (id, share_id) select ${fetch.fetchId}::uuid, id from spent
        ), told as (
          ${tellSpending(sql, events)}
        )
        select found.target_type as "targetType", found.mode, found.owner_id as "ownerId", coalesce(spent.max_uses, found.max_uses) as "maxUses", spent.uses, found.passcode_hash as "passcodeHash"
        from found left join spent on true`);
      return spending.then((rows) => rows[0], (error: unknown) => {
        if (isDuplicate(error, 'fetches_pkey')) return 'fetch_returned';
        throw error;
      });
    },

    /**
     * Spends a grant and a use of its agent share together. A racer on the same grant breaks the unique index
     * and with it its whole statement, so a grant works once and a refused try leaves it unused.
     */
    async spendGrant(fetch: GrantFetch, events: readonly DomainEvent[]): Promise<GrantSpending> {
      try {
        const rows = await database.run((sql) => sql<Spent[]>`
          with spent as (
            update shares set uses = uses + 1
            where id = ${fetch.shareId} and target_id = ${fetch.targetId} and ${isLive(sql)} and mode = 'agent'
              and ${fetch.agentId} = any(allowed_agent_ids) and (max_uses is null or uses < max_uses) and ${isOpenTo(sql, fetch)}
            returning id, target_type, owner_id, max_uses, uses
          ), recorded as (
            insert into fetches (id, share_id, grant_id) select ${fetch.fetchId}::uuid, id, ${fetch.grantId}::text from spent
          ), told as (
            ${tellSpending(sql, events)}
          )
          select owner_id as "ownerId", max_uses as "maxUses", uses from spent`);
        return rows[0] ?? 'refused';
      } catch (error) {
        if (isDuplicate(error, 'fetches_grant_once')) return 'grant_already_used';
        if (isDuplicate(error, 'fetches_pkey')) return 'fetch_returned';
        throw error;
      }
    },

    async isGrantUsed(grantId: string): Promise<boolean> {
      const rows = await database.run((sql) => sql`select from fetches where grant_id = ${grantId} and returned_at is null`);
      return rows.length > 0;
    },

    /**
     * Gives back what a fetch spent. When the spending has not arrived yet, takes its place, so that it never will.
     * Answers whether a use or grant came back; a second time changes nothing.
     */
    async returnUse(fetchId: string, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql<{ shareId: string | null }[]>`
        with returned as (
          insert into fetches (id, returned_at) values (${fetchId}, now())
          on conflict (id) do update set returned_at = now() where fetches.returned_at is null
          returning share_id
        ), share as (
          update shares set uses = uses - 1 from returned where shares.id = returned.share_id
          returning shares.id, shares.owner_id, shares.target_type, shares.target_id
        ), told as (
          insert into outbox (id, event)
          select ${event.id}::uuid, ${sql.json(event as never)}::jsonb
            || jsonb_build_object('ownerId', owner_id, 'shareId', id, 'targetType', target_type, 'targetId', target_id)
          from share
        )
        select id as "shareId" from share`);
      return rows.length > 0;
    },

    /** Forgets fetches that can be neither given back nor repeated any more: a grant lives minutes, a record an hour. */
    async purgeFetches(): Promise<void> {
      await database.run((sql) => sql`
        delete from fetches where id in (select id from fetches where spent_at < now() - interval '1 hour' limit 5000)`);
    },
  };
}
