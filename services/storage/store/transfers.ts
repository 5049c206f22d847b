/** Transfers: stored in one statement with their events, opened by id, ended by deletion. */
import type { Segment } from '../../../shared/blobs/blobs.ts';
import type { Database, Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { NewTransfer, Transfer } from '../domain/transfer.ts';
import { tell } from '../../../shared/tell.ts';
import { endAppends } from './appends.ts';

export const transferColumns = (sql: Sql) => sql`
  id, folder_id as "folderId", share_id as "shareId", plan_id as "planId", owner_id as "ownerId", agent_id as "agentId", kind, lane, filename, mime_type as "mimeType",
  size, crc32, sha256, release, segments, created_at as "createdAt", expires_at as "expiresAt", ended_at as "endedAt"`;

/** What a fetch needs of a transfer. */
export type OpenedTransfer = Pick<Transfer, 'kind' | 'filename' | 'mimeType' | 'size' | 'sha256' | 'createdAt' | 'segments' | 'folderId'> & { readonly bytes: Buffer | null };

/** Inserts a transfer, and that its share is wanted, from a row that must exist for it. The lifetime begins with this statement. */
export function insertTransfer(sql: Sql, from: string, transfer: NewTransfer, content: { bytes?: Uint8Array; segments?: readonly Segment[] }) {
  return sql`
    insert into transfers (
      id, share_id, plan_id, owner_id, agent_id, kind, lane, filename, mime_type, size, crc32, sha256, release, bytes, segments, expires_at)
    select
      ${transfer.id}, ${transfer.shareId}, ${transfer.planId}, ${transfer.ownerId}::text, ${transfer.agentId}::text, ${transfer.kind}, ${transfer.lane},
      ${transfer.filename}, ${transfer.mimeType}, ${transfer.size}::bigint, ${transfer.crc32}::bigint, ${transfer.sha256}::text,
      ${sql.json(transfer.release as never)}::jsonb, ${content.bytes ?? null}::bytea, ${content.segments ? sql.json(content.segments as never) : null}::jsonb,
      date_trunc('milliseconds', now()) + make_interval(secs => ${transfer.release.ttl}::int)
    from ${sql(from)}`;
}

export function wantShare(sql: Sql, stored: string) {
  return sql`insert into settlements (transfer_id, wanted) select id, 'created' from ${sql(stored)}`;
}

/** Wants the share of a transfer ended, whatever was wanted of it before. */
export function wantEnd(sql: Sql, ended: string) {
  return sql`
    insert into settlements (transfer_id, wanted) select id, 'ended' from ${sql(ended)}
    on conflict (transfer_id) do update set wanted = 'ended', since = now()`;
}

/** The event of an ended transfer, as one of its sender's. `ended` has owner_id, agent_id and share_id. */
export function tellEnd(sql: Sql, ended: string, event: DomainEvent) {
  return sql`
    insert into outbox (id, event)
    select ${event.id}::uuid, ${sql.json(event as never)}::jsonb || jsonb_build_object('ownerId', owner_id, 'agentId', agent_id, 'shareId', share_id)
    from ${sql(ended)}`;
}

export function transfersStore(database: Database) {
  async function findOne<T extends object>(statement: (sql: Sql) => PromiseLike<T[]>): Promise<T | undefined> {
    return (await database.run(statement))[0];
  }

  return {
    /** Stores a small asset in its row. Undefined when its plan has been used. */
    storeSmall: (transfer: NewTransfer, bytes: Uint8Array, event: DomainEvent) => findOne((sql) => sql<Transfer[]>`
      with unused as (
        select 1 where not exists (select from uploads where plan_id = ${transfer.planId})
      ), stored as (
        ${insertTransfer(sql, 'unused', transfer, { bytes })} on conflict do nothing returning *
      ), wanted as (${wantShare(sql, 'stored')}), told as (${tell(sql, 'stored', event)})
      select ${transferColumns(sql)} from stored`),

    /** Makes a written file a transfer. Undefined when its plan has been used or the file was given up. */
    storeWritten: (transfer: NewTransfer, key: string, event: DomainEvent) => findOne((sql) => sql<Transfer[]>`
      with written as (
        select key from blobs where key = ${key} and state = 'writing' and upload_id is null for update
      ), stored as (
        ${insertTransfer(sql, 'written', transfer, { segments: [{ key, offset: 0, size: transfer.size }] })} on conflict do nothing returning *
      ), kept as (
        update blobs set state = 'live', transfer_id = stored.id from stored where key = ${key}
      ), wanted as (${wantShare(sql, 'stored')}), told as (${tell(sql, 'stored', event)})
      select ${transferColumns(sql)} from stored`),

    findTransfer: (id: string) => findOne((sql) => sql<Transfer[]>`select ${transferColumns(sql)} from transfers where id = ${id}`),

    findTransferOfPlan: (planId: string) => findOne((sql) => sql<Transfer[]>`select ${transferColumns(sql)} from transfers where plan_id = ${planId}`),

    /** A transfer that can be fetched at this moment, its inline bytes with it when asked for. */
    openTransfer: (id: string, withBytes: boolean) => findOne((sql) => sql<OpenedTransfer[]>`
      select kind, folder_id as "folderId", filename, mime_type as "mimeType", size, sha256, created_at as "createdAt", segments, ${withBytes ? sql`bytes` : sql`null as bytes`}
      from transfers where id = ${id} and ended_at is null and (
        case when folder_id is null then expires_at > now()
        -- A file lives as long as its folder.
        else exists (select from transfers folder where folder.id = transfers.folder_id and folder.ended_at is null and folder.expires_at > now()) end)`),

    /** Moves the expiry of a transfer that has not reached it, only ever later. The event of it is the share's. Answers the expiry, undefined when the transfer is gone. */
    async keepTransfer(id: string, until: Date): Promise<Date | undefined> {
      const rows = await database.run((sql) => sql<{ expiresAt: Date }[]>`
        update transfers set expires_at = greatest(expires_at, ${until}::timestamptz)
        where id = ${id} and ended_at is null and expires_at > now()
        returning expires_at as "expiresAt"`);
      return rows[0]?.expiresAt;
    },

    /** Ends a transfer and lets go of its bytes; those of a pipe stop coming. Answers whether it was still there to end. */
    async deleteTransfer(id: string, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with ended as (
          update transfers set ended_at = now(), ended_how = 'deleted', bytes = null
          where id = ${id} and ended_at is null
          returning id, owner_id, agent_id, share_id
        ), cut as (
          ${endAppends(sql, 'failed', sql`transfer_id = (select id from ended)`)}
        ), files as (
          update blobs set state = 'garbage', garbage_at = now()
          -- After the writer's row, which whoever records a piece has locked before its file.
          where transfer_id = (select id from ended) and state <> 'garbage' and (select count(*) from cut) >= 0
        ), closed as (
          update folders set ended_at = now() where id = (select id from ended)
        ), wanted as (${wantEnd(sql, 'ended')}), told as (${tellEnd(sql, 'ended', event)})
        select id from ended`);
      return rows.length > 0;
    },
  };
}
