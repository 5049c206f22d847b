/** Resumable uploads. Their row is locked before that of their append upload in every statement. */
import type { Segment } from '../../../shared/blobs/blobs.ts';
import { isDuplicate, type Database, type Sql } from '../../../shared/db.ts';
import { fail } from '../../../shared/errors.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import { tell, tellEach } from '../../../shared/tell.ts';
import type { Resumable } from '../domain/resumable.ts';
import type { NewTransfer, Transfer } from '../domain/transfer.ts';
import { endAppends, insertAppend, keepPieces } from './appends.ts';
import { insertTransfer, transferColumns, wantShare } from './transfers.ts';

export interface NewResumable extends Omit<Resumable, 'received' | 'state' | 'createdAt' | 'expiresAt'> {
  /** Seconds. */
  readonly ttl: number;
}

/** What is stored is for the append upload to say. */
const columns = (sql: Sql) => sql`
  resumables.id, resumables.transfer_id as "transferId", share_id as "shareId", plan_id as "planId", owner_id as "ownerId", agent_id as "agentId",
  filename, mime_type as "mimeType", size, release, metadata, received, max_bytes as "maxBytes",
  case when resumables.state = 'open' and expires_at <= now() then 'expired' else resumables.state end as state,
  resumables.created_at as "createdAt", expires_at as "expiresAt"`;

export function resumablesStore(database: Database) {
  async function findBy(where: (sql: Sql) => ReturnType<typeof columns>): Promise<Resumable | undefined> {
    const rows = await database.run((sql) => sql<Resumable[]>`
      select ${columns(sql)} from resumables join appends on appends.id = resumables.id where ${where(sql)}`);
    return rows[0];
  }

  return {
    findResumable: (id: string) => findBy((sql) => sql`resumables.id = ${id}`),
    findResumableOfPlan: (planId: string) => findBy((sql) => sql`plan_id = ${planId}`),

    /** Begins an upload. Answers whether it did: not when its plan was used before. */
    async beginResumable(upload: NewResumable, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with upload as (
          insert into resumables (id, transfer_id, share_id, plan_id, owner_id, agent_id, filename, mime_type, size, release, metadata, created_at, expires_at)
          select ${upload.id}, ${upload.transferId}, ${upload.shareId}, ${upload.planId}, ${upload.ownerId}::text, ${upload.agentId}::text,
            ${upload.filename}, ${upload.mimeType}, ${upload.size}::bigint, ${sql.json(upload.release as never)}::jsonb, ${upload.metadata}::text,
            date_trunc('milliseconds', now()), date_trunc('milliseconds', now()) + make_interval(secs => ${upload.ttl}::int)
          where not exists (select from transfers where plan_id = ${upload.planId}) and not exists (select from uploads where plan_id = ${upload.planId})
          on conflict do nothing
          returning id
        ), append as (${insertAppend(sql, 'upload', { id: upload.id, transferId: null, maxBytes: upload.maxBytes })}), told as (${tell(sql, 'upload', event)})
        select id from upload`);
      return rows.length > 0;
    },

    /** Fixes the size of an upload that was begun without; no more may come then. Answers whether it holds. */
    async declareSize(id: string, size: number): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with bounded as (
          update appends set max_bytes = ${size}::bigint
          where id = (select id from resumables where id = ${id} and state = 'open' and (size is null or size = ${size}::bigint) for update)
            and state = 'open' and received <= ${size}::bigint and max_bytes >= ${size}::bigint
          returning id
        )
        update resumables set size = ${size}::bigint from bounded where resumables.id = bounded.id returning resumables.id`);
      return rows.length > 0;
    },

    /**
     * Makes an upload a transfer. Undefined when it is not open, or not wholly stored.
     * @throws plan_already_used when the plan made a transfer by another lane meanwhile
     */
    async finishResumable(id: string, { transfer, segments, events }: { transfer: NewTransfer; segments: readonly Segment[]; events: readonly DomainEvent[] }): Promise<Transfer | undefined> {
      const rows = await database.run((sql) => sql<Transfer[]>`
        with upload as (
          update resumables set state = 'completed', ended_at = now()
          where id = ${id} and state = 'open' and size = ${transfer.size}::bigint
            and exists (select from appends where appends.id = ${id} and appends.state = 'open' and received = ${transfer.size}::bigint)
          returning id
        ), append as (${endAppends(sql, 'complete', sql`id = (select id from upload)`)}
        ), stored as (
          ${insertTransfer(sql, 'append', transfer, { segments })} returning *
        ), files as (${keepPieces(sql, 'append', transfer.id)}
        ), wanted as (${wantShare(sql, 'stored')}), told as (${tell(sql, 'stored', ...events)})
        select ${transferColumns(sql)} from stored`).catch((error: unknown) => {
        throw isDuplicate(error, 'transfers_pkey') || isDuplicate(error, 'transfers_plan') ? fail('plan_already_used', {}, error) : error;
      });
      return rows[0];
    },

    /** Ends an open upload without a transfer. Answers whether this call did it. */
    async abortResumable(id: string, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with upload as (
          update resumables set state = 'aborted', ended_at = now() where id = ${id} and state = 'open' returning id
        ), append as (${endAppends(sql, 'failed', sql`id = (select id from upload)`)}
        ), files as (
          update blobs set state = 'garbage', garbage_at = now() where upload_id = (select id from append) and state <> 'garbage'
        ), told as (${tell(sql, 'upload', event)})
        select id from upload`);
      return rows.length > 0;
    },

    /** Ends uploads past their expiry. Answers how many. */
    async expireResumables(event: DomainEvent, limit: number): Promise<number> {
      const rows = await database.run((sql) => sql`
        with ended as (
          update resumables set state = 'expired', ended_at = now()
          where id in (select id from resumables where state = 'open' and expires_at <= now() order by expires_at limit ${limit} for update skip locked)
          returning id, transfer_id, share_id, owner_id, agent_id, 'file' as target_type, gen_random_uuid() as event_id,
            jsonb_strip_nulls(jsonb_build_object('uploadId', id, 'size', size, 'lane', 'multipart')) as data
        ), append as (${endAppends(sql, 'failed', sql`id in (select id from ended)`)}
        ), files as (
          update blobs set state = 'garbage', garbage_at = now() where upload_id in (select id from append) and state <> 'garbage'
        ), told as (${tellEach(sql, 'ended', event)})
        select id from ended`);
      return rows.length;
    },

    /** Forgets uploads that ended long ago. Answers how many. */
    async purgeResumables(keepSeconds: number, limit: number): Promise<number> {
      const { count } = await database.run((sql) => sql`
        delete from resumables where id in (
          select id from resumables where ended_at < now() - make_interval(secs => ${keepSeconds}::int) order by ended_at limit ${limit})`);
      return count;
    },
  };
}
