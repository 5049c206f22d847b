/** Folders and their files: declared one by one, ready each by itself, ended together. */
import type { Segment } from '../../../shared/blobs/blobs.ts';
import type { Database, Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import { tell } from '../../../shared/tell.ts';
import type { Command } from '../domain/completion.ts';
import type { Folder, Names } from '../domain/folder.ts';
import type { NewTransfer, Transfer } from '../domain/transfer.ts';
import type { Upload } from '../domain/upload.ts';
import { finishCompletion } from './completions.ts';
import { insertTransfer, transferColumns, wantShare } from './transfers.ts';
import { keepFiles } from './uploads.ts';

type Geometry = Pick<Folder, 'partSize' | 'maxParallelParts' | 'maxFileBytes'>;

export interface NewFile extends Names {
  readonly folderId: string;
  readonly fileId: string;
  readonly uploadId: string;
  readonly path: string;
  readonly size: number;
  readonly mimeType: string;
  readonly partSize: number;
  readonly partCount: number;
  readonly mainKey: string;
  readonly lane: Upload['lane'];
  readonly operationHash: string | null;
  readonly requestDigest: string;
  /** Seconds. */
  readonly ttl: number;
  /** What the folder may hold. */
  readonly maxFiles: number;
  readonly maxBytes: number;
}

export type Declared = 'declared' | 'declared_before' | 'folder_gone' | 'path_taken' | 'too_many_files' | 'too_many_bytes';

export interface ListedFile {
  readonly place: number;
  readonly fileId: string;
  readonly path: string;
  readonly size: number;
  readonly mimeType: string;
  readonly state: 'uploading' | 'ready';
  readonly sha256: string | null;
}

export interface ReadyFile {
  readonly upload: Upload;
  readonly segments: readonly Segment[];
  readonly crc32: number | null;
  readonly sha256: string | null;
}

/** What an archive of a folder would hold at one moment. */
export interface ArchiveFacts {
  readonly name: string;
  readonly createdAt: Date;
  readonly entries: number;
  readonly bytes: number;
  readonly nameBytes: number;
  readonly unchecked: number;
  /** The place of every entry in order, 32 bits each, the highest byte first. */
  readonly places: Buffer;
}

export interface ArchiveEntry {
  readonly place: number;
  readonly name: string;
  readonly size: number;
  readonly crc32: number | null;
  readonly readyAt: Date;
  /** Null when the file is gone. */
  readonly segments: Segment[] | null;
}

const isLive = (sql: Sql) => sql`ended_at is null and expires_at > now()`;

export function foldersStore(database: Database) {
  async function findOne<T extends object>(statement: (sql: Sql) => PromiseLike<T[]>): Promise<T | undefined> {
    return (await database.run(statement))[0];
  }

  return {
    /** Makes a folder, empty. Undefined when its plan has been used. */
    createFolder: (folder: NewTransfer, { partSize, maxParallelParts, maxFileBytes }: Geometry, event: DomainEvent) => findOne((sql) => sql<Transfer[]>`
      with unused as (
        select 1 where not exists (select from uploads where plan_id = ${folder.planId})
      ), stored as (
        ${insertTransfer(sql, 'unused', folder, {})} on conflict do nothing returning *
      ), opened as (
        insert into folders (id, part_size, max_parallel_parts, max_file_bytes)
        select id, ${partSize}::bigint, ${maxParallelParts}::int, ${maxFileBytes}::bigint from stored
      ), wanted as (${wantShare(sql, 'stored')}), told as (${tell(sql, 'stored', event)})
      select ${transferColumns(sql)} from stored`),

    /** A folder that has not ended. */
    findFolder: (id: string) => findOne((sql) => sql<Folder[]>`
      select transfer.*, part_size as "partSize", max_parallel_parts as "maxParallelParts", max_file_bytes as "maxFileBytes"
      from (select ${transferColumns(sql)} from transfers where id = ${id} and ${isLive(sql)}) transfer join folders on folders.id = transfer.id`),

    /** Declares a file and begins its upload, or says why not. */
    async declareFile(file: NewFile, event: DomainEvent): Promise<Declared> {
      const rows = await database.run((sql) => sql<{ declared: Declared }[]>`
        select declare_file(${sql.json(file as never)}::jsonb, ${sql.json(event as never)}::jsonb) as declared`);
      return rows[0]!.declared;
    },

    /**
     * Makes an upload a file of its folder and its command done, if no part was recorded since it was read. Answers whether it did.
     * The folder's row is held, so that no file comes into a folder that is ending.
     */
    async storeFile({ upload, segments, crc32, sha256 }: ReadyFile, command: Command, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with folder as (
          select id from folders where id = ${upload.folderId} and ended_at is null for share
        ), upload as (
          update uploads set state = 'completed', ended_at = now()
          where id = ${upload.id} and state = 'initialized' and expires_at > now() and parts_version = ${upload.partsVersion} and exists (select from folder)
          returning *
        ), stored as (
          insert into transfers (id, share_id, plan_id, folder_id, owner_id, agent_id, kind, lane, filename, mime_type, size, crc32, sha256, release, segments, expires_at)
          select transfer_id, upload.share_id, upload.plan_id, upload.folder_id, upload.owner_id, upload.agent_id, 'file', upload.lane, upload.filename, upload.mime_type,
            upload.size, ${crc32}::bigint, ${sha256}::text, upload.release, ${sql.json(segments as never)}::jsonb, folder.expires_at
          from upload join transfers folder on folder.id = upload.folder_id
          returning id
        ), files as (${keepFiles(sql, upload.transferId, segments)}
        ), ready as (
          update folder_files set ready_at = date_trunc('milliseconds', now()), crc32 = ${crc32}::bigint where id = (select id from stored)
        ), done as (${finishCompletion(sql, command, 'stored')}
        ), told as (${tell(sql, 'stored', event)})
        select id from stored`);
      return rows.length > 0;
    },

    /** Removes a file from its folder and lets go of its bytes. */
    async deleteFile(id: string, event: DomainEvent): Promise<void> {
      await database.run((sql) => sql`
        with ended as (
          update transfers set ended_at = now(), ended_how = 'deleted', bytes = null where id = ${id} and ended_at is null returning id
        ), files as (
          update blobs set state = 'garbage', garbage_at = now() where transfer_id = (select id from ended) and state <> 'garbage'
        ), gone as (
          update folder_files set gone_at = now() where id = (select id from ended)
        )
        ${tell(sql, 'ended', event)}`);
    },

    /** Files behind a place, in their order. */
    listFiles: ({ folderId, after, limit, readyOnly }: { folderId: string; after: number; limit: number; readyOnly: boolean }): Promise<ListedFile[]> => database.run((sql) => sql<ListedFile[]>`
      select place, file.id as "fileId", path, file.size, file.mime_type as "mimeType", case when ready_at is null then 'uploading' else 'ready' end as state, transfer.sha256
      from folder_files file left join transfers transfer on transfer.id = file.id
      where file.folder_id = ${folderId} and place > ${after} and gone_at is null and (ready_at is not null or not ${readyOnly}::boolean)
      order by place limit ${limit}`),

    async readFolderState(id: string): Promise<'empty' | 'uploading' | 'ready'> {
      const rows = await database.run((sql) => sql<{ state: 'empty' | 'uploading' | 'ready' }[]>`
        select case when exists (select from folder_files where folder_id = ${id} and ready_at is null and gone_at is null) then 'uploading'
          when exists (select from folder_files where folder_id = ${id} and gone_at is null) then 'ready' else 'empty' end as state`);
      return rows[0]!.state;
    },

    /** Undefined when the folder has ended or nothing in it is ready. */
    openArchive: (folderId: string) => findOne((sql) => sql<ArchiveFacts[]>`
      select folder.filename as name, folder.created_at as "createdAt", entries, file.bytes, "nameBytes", unchecked, places
      from transfers folder, lateral (
        select count(*)::int as entries, sum(size)::bigint as bytes, sum(octet_length(archive_name))::bigint as "nameBytes",
          count(*) filter (where crc32 is null)::int as unchecked, string_agg(int4send(place), '' order by place) as places
        from folder_files where folder_id = folder.id and ready_at is not null and gone_at is null
      ) file
      where id = ${folderId} and ${isLive(sql)} and entries > 0`),

    /** Entries of an archive, in order. With `live` only those whose bytes are there. */
    listArchive: ({ folderId, places, live }: { folderId: string; places: readonly number[]; live: boolean }): Promise<ArchiveEntry[]> => database.run((sql) => sql<ArchiveEntry[]>`
      select place, archive_name as name, file.size, file.crc32, ready_at as "readyAt", transfer.segments
      from folder_files file left join transfers transfer on transfer.id = file.id and gone_at is null
      where file.folder_id = ${folderId} and place between ${places[0]!} and ${places.at(-1)!} and place in (select value::int from jsonb_array_elements_text(${sql.json(places as never)}::jsonb)) and ready_at is not null
        and (not ${live}::boolean or (gone_at is null and exists (select from transfers folder where folder.id = file.folder_id and ${isLive(sql)})))
      order by place`),

    /** Ends a batch of files of folders that have ended. A folder's row goes when no file of it is left. Answers how many. */
    async endFiles(limit: number): Promise<number> {
      const rows = await database.run((sql) => sql`
        with folder as (
          select id from folders where ended_at is not null order by ended_at limit ${limit} for update skip locked
        ), gone as (
          update folder_files set gone_at = now()
          where (folder_id, place) in (
            select folder_id, place from folder join folder_files on folder_id = folder.id where gone_at is null limit ${limit})
          returning id, upload_id
        ), ended as (
          update transfers set ended_at = now(), bytes = null, ended_how = folder.ended_how
          from transfers folder where folder.id = transfers.folder_id and transfers.id in (select id from gone) and transfers.ended_at is null
        ), given_up as (
          update uploads set state = 'expired', ended_at = now() where id in (select upload_id from gone) and state in ('initialized', 'assembling')
        ), files as (
          update blobs set state = 'garbage', garbage_at = now() where upload_id in (select upload_id from gone) and state <> 'garbage'
        ), emptied as (
          delete from folders
          where id in (select id from folder) and not exists (select from folder_files where folder_id = folders.id and gone_at is null)
          returning id
        )
        select id from gone union all select id from emptied`);
      return rows.length;
    },

    /** Forgets files that ended long ago. Answers how many. */
    async purgeFiles(keepSeconds: number, limit: number): Promise<number> {
      const { count } = await database.run((sql) => sql`
        delete from folder_files where id in (
          select id from folder_files where gone_at < now() - make_interval(secs => ${keepSeconds}::int) order by gone_at limit ${limit})`);
      return count;
    },
  };
}
