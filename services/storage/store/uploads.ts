/** Multipart uploads: begun once for a plan, and ended in exactly one way. */
import type { Segment } from '../../../shared/blobs/blobs.ts';
import { isDuplicate, type Database, type Sql } from '../../../shared/db.ts';
import { fail } from '../../../shared/errors.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { NewTransfer, Transfer } from '../domain/transfer.ts';
import type { Part, Upload } from '../domain/upload.ts';
import { tell } from './tell.ts';
import { insertTransfer, transferColumns, wantShare } from './transfers.ts';

/** An upload is expired from its expiry on, whether or not the sweeper came by. */
const uploadColumns = (sql: Sql) => sql`
  id, transfer_id as "transferId", share_id as "shareId", plan_id as "planId", plan_bound as "planBound",
  owner_id as "ownerId", agent_id as "agentId", filename, mime_type as "mimeType", size, sha256, release,
  part_size as "partSize", part_count as "partCount", max_parallel_parts as "maxParallelParts", main_key as "mainKey",
  case when state in ('initialized', 'assembling') and expires_at <= now() then 'expired' else state end as state,
  lane, sealed, (select session from blobs where blobs.key = main_key) as session,
  parts_version as "partsVersion", request_digest as "requestDigest", expires_at as "expiresAt"`;

export interface NewUpload extends Omit<Upload, 'state' | 'partsVersion' | 'expiresAt' | 'sealed' | 'session'> {
  readonly operationHash: string | null;
  /** Seconds. */
  readonly ttl: number;
}

export type UploadWithParts = Upload & { readonly parts: Part[] };

export interface Completion {
  readonly upload: Upload;
  readonly transfer: NewTransfer;
  readonly segments: readonly Segment[];
  readonly events: readonly DomainEvent[];
}

export function uploadsStore(database: Database) {
  async function findUploadBy(where: (sql: Sql) => ReturnType<typeof uploadColumns>): Promise<Upload | undefined> {
    return (await database.run((sql) => sql<Upload[]>`select ${uploadColumns(sql)} from uploads where ${where(sql)}`))[0];
  }

  return {
    /** Begins an upload and names the file it will be in. Undefined when its plan or its operation was used before. */
    async initUpload(upload: NewUpload, event: DomainEvent): Promise<Upload | undefined> {
      const rows = await database.run((sql) => sql<Upload[]>`
        with upload as (
          insert into uploads (
            id, transfer_id, share_id, plan_id, plan_bound, owner_id, agent_id, filename, mime_type, size, sha256, release,
            part_size, part_count, max_parallel_parts, main_key, lane, operation_hash, request_digest, expires_at)
          select
            ${upload.id}, ${upload.transferId}, ${upload.shareId}, ${upload.planId}, ${upload.planBound}::boolean, ${upload.ownerId}::text, ${upload.agentId}::text,
            ${upload.filename}, ${upload.mimeType}, ${upload.size}::bigint, ${upload.sha256}::text, ${sql.json(upload.release as never)}::jsonb,
            ${upload.partSize}::bigint, ${upload.partCount}::int, ${upload.maxParallelParts}::int, ${upload.mainKey}, ${upload.lane},
            ${upload.operationHash}::text, ${upload.requestDigest}, date_trunc('milliseconds', now()) + make_interval(secs => ${upload.ttl}::int)
          where not exists (select from transfers where plan_id = ${upload.planId})
          on conflict do nothing
          returning *
        ), file as (
          insert into blobs (key, upload_id) select main_key, id from upload
        ), told as (${tell(sql, 'upload', event)})
        select ${uploadColumns(sql)} from upload`);
      return rows[0];
    },

    findUpload: (id: string) => findUploadBy((sql) => sql`id = ${id}`),
    findUploadOfPlan: (planId: string) => findUploadBy((sql) => sql`plan_id = ${planId}`),
    findUploadOfOperation: (hash: string) => findUploadBy((sql) => sql`operation_hash = ${hash}`),

    /** An upload and its current parts as they were at one moment. */
    async findUploadWithParts(id: string): Promise<UploadWithParts | undefined> {
      const rows = await database.run((sql) => sql<UploadWithParts[]>`
        select ${uploadColumns(sql)}, coalesce((
          select jsonb_agg(jsonb_build_object('partNumber', part_number, 'key', key, 'size', size, 'sha256', sha256, 'etag', etag, 'place', place) order by part_number)
          from (
            select distinct on (part_number) part_number, key, size, sha256, etag, place from parts
            where upload_id = uploads.id and version is not null order by part_number, version desc
          ) current_parts
        ), '[]') as parts
        from uploads where id = ${id}`);
      return rows[0];
    },

    /**
     * Makes an upload a transfer, if no part was recorded since it was read. Files that hold nothing of it become garbage.
     * @throws plan_already_used when the plan made a transfer by another lane meanwhile
     */
    async completeUpload({ upload, transfer, segments, events }: Completion): Promise<Transfer | undefined> {
      const keys = [...new Set(segments.map((segment) => segment.key))];
      const rows = await database.run((sql) => sql<Transfer[]>`
        with upload as (
          update uploads set state = 'completing', ended_at = now()
          where id = ${upload.id} and state = 'initialized' and expires_at > now() and parts_version = ${upload.partsVersion}
          returning id
        ), stored as (
          ${insertTransfer(sql, 'upload', transfer, { segments })} returning *
        ), files as (
          update blobs set
            state = case when key = any(${keys}) then 'live' else 'garbage' end,
            transfer_id = case when key = any(${keys}) then ${transfer.id} end,
            garbage_at = case when key = any(${keys}) then null else now() end
          where upload_id = (select id from upload) and state <> 'garbage'
        ), wanted as (${wantShare(sql, 'stored')}), told as (${tell(sql, 'stored', ...events)})
        select ${transferColumns(sql)} from stored`).catch((error: unknown) => {
        throw isDuplicate(error, 'transfers_pkey') || isDuplicate(error, 'transfers_plan') ? fail('plan_already_used', {}, error) : error;
      });
      return rows[0];
    },

    /** Aborts an upload that is not completed. Answers whether this call did it. */
    async abortUpload(id: string, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with upload as (
          update uploads set state = 'aborted', ended_at = now() where id = ${id} and state in ('initialized', 'assembling') and expires_at > now() returning id
        ), files as (
          update blobs set state = 'garbage', garbage_at = now() where upload_id = (select id from upload) and state <> 'garbage'
        ), told as (${tell(sql, 'upload', event)})
        select id from upload`);
      return rows.length > 0;
    },
  };
}
