/** Uploads that an object store puts together: nothing of them changes meanwhile, and a crash leaves them where anybody can go on. */
import type { Database } from '../../../shared/db.ts';
import type { StoredPart } from '../../../shared/blobs/blobs.ts';
import type { Upload } from '../domain/upload.ts';

type Seen = Pick<Upload, 'id' | 'partsVersion'>;

export function assembliesStore(database: Database) {
  return {
    /**
     * Begins to put an upload together, if no part was recorded since it was read. Parts that went straight to the store are recorded with it.
     * Answers the new version of its parts.
     */
    async beginAssembly({ id, partsVersion }: Seen, listed: readonly StoredPart[]): Promise<number | undefined> {
      const rows = await database.run((sql) => sql<{ partsVersion: number }[]>`
        with upload as (
          update uploads set state = 'assembling', assembling_since = now(), parts_version = parts_version + 1
          where id = ${id} and state = 'initialized' and expires_at > now() and parts_version = ${partsVersion} and not sealed
          returning id, main_key, parts_version
        ), recorded as (
          insert into parts (key, part_number, upload_id, version, size, etag)
          select main_key, listed.part_number, id, parts_version, listed.size, listed.etag
          from upload, jsonb_to_recordset(${sql.json(listed.map(({ partNumber, ...rest }) => ({ part_number: partNumber, ...rest })))}::jsonb) as listed (part_number int, size bigint, etag text)
        )
        select parts_version as "partsVersion" from upload`);
      return rows[0]?.partsVersion;
    },

    /** Records where each part is in the object that the store has made. The upload is open again, and whoever completes it needs the store no more. */
    async sealUpload({ id, partsVersion }: Seen, places: readonly { partNumber: number; place: number }[]): Promise<void> {
      await database.run((sql) => sql`
        with upload as (
          update uploads set state = 'initialized', sealed = true, assembling_since = null
          where id = ${id} and state = 'assembling' and parts_version = ${partsVersion}
          returning id, main_key
        )
        update parts set place = placed.place
        from upload, jsonb_to_recordset(${sql.json(places.map(({ partNumber, place }) => ({ part_number: partNumber, place })))}::jsonb) as placed (part_number int, place bigint)
        where parts.key = upload.main_key and parts.part_number = placed.part_number and upload_id = upload.id`);
    },

    /** Opens an upload that the store refused to put together, without the parts that it does not have. */
    async reopenUpload({ id, partsVersion }: Seen, lost: readonly number[]): Promise<void> {
      await database.run((sql) => sql`
        with upload as (
          update uploads set state = 'initialized', assembling_since = null, parts_version = parts_version + 1
          where id = ${id} and state = 'assembling' and parts_version = ${partsVersion}
          returning id, main_key
        )
        delete from parts using upload
        where parts.key = upload.main_key and parts.upload_id = upload.id and parts.part_number in (select value::int from jsonb_array_elements_text(${sql.json(lost as number[])}::jsonb))`);
    },

    /** Uploads that a crash or an outage left half put together. */
    async findAssembling(afterSeconds: number, limit: number): Promise<string[]> {
      const rows = await database.run((sql) => sql<{ id: string }[]>`
        select id from uploads where state = 'assembling' and expires_at > now() and assembling_since <= now() - make_interval(secs => ${afterSeconds}::int)
        order by assembling_since limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Puts those that failed once more behind all others. */
    async assembleLater(ids: readonly string[]): Promise<void> {
      await database.run((sql) => sql`update uploads set assembling_since = now() where id = any(${ids as string[]}) and state = 'assembling'`);
    },
  };
}
