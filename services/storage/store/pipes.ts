/** Pipes: a transfer that is shown before its bytes are there, with the append upload they come by. Its row is locked before the upload's, and that before the files. */
import type { Segment } from '../../../shared/blobs/blobs.ts';
import { isDuplicate, type Database, type Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import { tell } from '../../../shared/tell.ts';
import type { Append } from '../domain/append.ts';
import type { NewTransfer, Transfer } from '../domain/transfer.ts';
import { endAppends, keepPieces, segmentsOfAppend } from './appends.ts';
import { insertTransfer, tellEnd, transferColumns, wantEnd, wantShare } from './transfers.ts';

export interface NewPipe {
  readonly transfer: NewTransfer;
  readonly maxBytes: number;
  readonly operationHash: string | null;
  readonly requestDigest: string;
}

/** What followers learn of a pipe. */
export type FollowedPipe = Pick<Append, 'state' | 'received'> & { readonly segments: Segment[] };

export type BegunPipe = Transfer & { readonly requestDigest: string };

export function pipesStore(database: Database) {
  /** A pipe, whatever became of it, with what its first request was. */
  async function findBegun(where: (sql: Sql) => ReturnType<typeof transferColumns>): Promise<BegunPipe | undefined> {
    const rows = await database.run((sql) => sql<BegunPipe[]>`
      select ${transferColumns(sql)}, begun.request_digest as "requestDigest"
      from transfers join lateral (select request_digest, operation_hash from appends where appends.transfer_id = transfers.id) begun on true where ${where(sql)}`);
    return rows[0];
  }

  return {
    /** Begins a pipe. Undefined when its plan or its operation was used before. */
    async createPipe({ transfer, maxBytes, operationHash, requestDigest }: NewPipe, event: DomainEvent): Promise<Transfer | undefined> {
      const rows = await database.run((sql) => sql<Transfer[]>`
        with unused as (
          select 1 where not exists (select from uploads where plan_id = ${transfer.planId})
        ), stored as (
          ${insertTransfer(sql, 'unused', transfer, {})} on conflict do nothing returning *
        ), append as (
          insert into appends (id, transfer_id, max_bytes, operation_hash, request_digest)
          select id, id, ${maxBytes}::bigint, ${operationHash}::text, ${requestDigest} from stored
        ), wanted as (${wantShare(sql, 'stored')}), told as (${tell(sql, 'stored', event)})
        select ${transferColumns(sql)} from stored`).catch((error: unknown) => {
        if (isDuplicate(error, 'appends_operation')) return [];
        throw error;
      });
      return rows[0];
    },

    findPipeOfOperation: (hash: string) => findBegun((sql) => sql`begun.operation_hash = ${hash}`),
    findPipeOfPlan: (planId: string) => findBegun((sql) => sql`transfers.plan_id = ${planId}`),

    /** The last byte has come: the pipe is a transfer like any other. Undefined when its writer lost the lease, something else is stored, or it has ended. */
    async completePipe(pipe: { id: string; lease: string; size: number; sha256: string }, events: readonly DomainEvent[]): Promise<boolean> {
      const { id, lease, size, sha256 } = pipe;
      const rows = await database.run((sql) => sql`
        with pipe as (
          select id from transfers where id = ${id} and ended_at is null and expires_at > now() for update
        ), append as (
          ${endAppends(sql, 'complete', sql`id = (select id from pipe) and lease = ${lease} and received = ${size}::bigint`)}
        ), stored as (
          update transfers set size = append.received, sha256 = ${sha256}, segments = ${segmentsOfAppend(sql, id)}
          from append where transfers.id = append.id returning transfers.id
        ), files as (${keepPieces(sql, 'append', id)}), told as (${tell(sql, 'stored', ...events)})
        select id from stored`);
      return rows.length > 0;
    },

    /** Ends a pipe without its last byte. Answers whether this call did it. @param lease its writer's; null for a writer that is taken for gone */
    async failPipe(id: string, lease: string | null, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with pipe as (
          select id from transfers where id = ${id} and ended_at is null for update
        ), append as (
          ${endAppends(sql, 'failed', sql`id = (select id from pipe) and (lease = ${lease}::text or (${lease}::text is null and lease_until <= now()))`)}
        ), ended as (
          update transfers set ended_at = now(), ended_how = 'failed' from append where transfers.id = append.id
          returning transfers.id, owner_id, agent_id, share_id
        ), files as (
          update blobs set state = 'garbage', garbage_at = now() where upload_id = (select id from append) and state <> 'garbage'
        ), wanted as (${wantEnd(sql, 'ended')}), told as (${tellEnd(sql, 'ended', event)})
        select id from ended`);
      return rows.length > 0;
    },

    /** Pipes whose writer has said nothing for longer than its lease. */
    async findLostPipes(limit: number): Promise<string[]> {
      const rows = await database.run((sql) => sql<{ id: string }[]>`
        select id from appends where state = 'open' and lease is not null and lease_until <= now() and transfer_id is not null order by lease_until limit ${limit}`);
      return rows.map(({ id }) => id);
    },

    /** A pipe as it is at one moment, with up to `limit` of its pieces from an offset on. */
    async followPipe(id: string, from: number, limit: number): Promise<FollowedPipe | undefined> {
      const rows = await database.run((sql) => sql<FollowedPipe[]>`
        select state, received, coalesce((
          select jsonb_agg(jsonb_build_object('key', key, 'offset', key_offset + greatest(${from}::bigint - start, 0), 'size', size - greatest(${from}::bigint - start, 0)) order by start)
          from (select * from pieces where append_id = appends.id and start + size > ${from}::bigint order by start limit ${limit}) coming
        ), '[]') as segments
        from appends where transfer_id = ${id}`);
      return rows[0];
    },
  };
}
