/** Attempts to write parts. Each has a place nobody else writes; the last one recorded is the part. */
import type { Written } from '../../../shared/contracts/uploads.ts';
import type { Database } from '../../../shared/db.ts';
import type { Part, Upload } from '../domain/upload.ts';

export interface Attempt {
  readonly uploadId: string;
  readonly partNumber: number;
  readonly key: string;
}

/** What an attempt asks for. */
export interface Claim {
  readonly upload: Pick<Upload, 'id'>;
  readonly partNumber: number;
  readonly spareKey: string;
  readonly checkAfterSeconds: number;
  /** Every attempt has a file of its own: an object store takes no parts of this size. */
  readonly spareOnly?: boolean;
}

export type RecordedBytes = Written & { readonly sha256: string };

export function partsStore(database: Database) {
  return {
    /**
     * Claims a place for an attempt: the part's place in the main file for the first, the file `spareKey` for every later one,
     * so that a writer given up long ago cannot touch what a later one recorded. Undefined when the upload is no longer open.
     */
    async claimPart({ upload, partNumber, spareKey, checkAfterSeconds, spareOnly = false }: Claim): Promise<string | undefined> {
      const rows = await database.run((sql) => sql<{ key: string }[]>`
        with upload as (
          select id, main_key from uploads where id = ${upload.id} and state = 'initialized' and expires_at > now()
        ), main as (
          insert into parts (key, part_number, upload_id) select main_key, ${partNumber}::int, id from upload where not ${spareOnly}::boolean on conflict do nothing returning key
        ), file as (
          insert into blobs (key, upload_id, check_after)
          select ${spareKey}, id, now() + make_interval(secs => ${checkAfterSeconds}::int) from upload where not exists (select from main)
          returning key, upload_id
        ), spare as (
          insert into parts (key, part_number, upload_id) select key, ${partNumber}::int, upload_id from file returning key
        )
        select key from main union all select key from spare`);
      return rows[0]?.key;
    },

    /**
     * Records a written attempt as the part; an earlier one becomes garbage. Answers whether it did: not when the upload is no longer open,
     * the attempt was given up or was recorded before.
     * The upload's row is taken first, as in every statement that ends an upload: they wait for each other and never cross.
     */
    async recordPart({ uploadId, partNumber, key }: Attempt, { size, crc32, sha256, etag }: RecordedBytes): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with upload as (
          update uploads set parts_version = parts_version + 1
          where id = ${uploadId} and state = 'initialized' and expires_at > now()
            -- The store has made its object of the main file: what comes late has no place in it.
            and not (sealed and main_key = ${key})
          returning id, parts_version, main_key
        ), written as (
          select key from blobs where key = ${key} and upload_id = (select id from upload) and state = 'writing' for update
        ), recorded as (
          update parts set size = ${size}::bigint, crc32 = ${crc32}::bigint, sha256 = ${sha256}, etag = ${etag ?? null}::text, version = upload.parts_version
          from upload, written
          where parts.key = written.key and part_number = ${partNumber}::int and version is null
          returning parts.key
        ), earlier as (
          select parts.key from parts, upload, recorded
          where parts.upload_id = upload.id and part_number = ${partNumber}::int and version is not null and parts.key not in (recorded.key, upload.main_key)
        ), files as (
          update blobs set
            state = case when blobs.key = ${key} then 'live' else 'garbage' end,
            garbage_at = case when blobs.key = ${key} then null else now() end
          from upload, recorded
          where blobs.key <> upload.main_key and (blobs.key = recorded.key or blobs.key in (select key from earlier)) and blobs.state <> 'garbage'
        )
        select key from recorded`);
      return rows.length > 0;
    },

    /** A recorded attempt, current or replaced. */
    async findRecorded({ uploadId, partNumber, key }: Attempt): Promise<Part | undefined> {
      const rows = await database.run((sql) => sql<Part[]>`
        select part_number as "partNumber", key, size, sha256, etag, place from parts
        where key = ${key} and part_number = ${partNumber}::int and upload_id = ${uploadId} and version is not null`);
      return rows[0];
    },
  };
}
