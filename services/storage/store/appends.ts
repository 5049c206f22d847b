/** Append uploads: who may write, and what is written. An upload's row is locked before its files in every statement, after its transfer's. */
import type { Segment } from '../../../shared/blobs/blobs.ts';
import type { Database, Sql } from '../../../shared/db.ts';
import type { Append, Piece } from '../domain/append.ts';

const appendColumns = (sql: Sql) => sql`id, state, max_bytes as "maxBytes", received, key, key_start as "keyStart", lease`;

export interface NewAppend {
  readonly id: string;
  /** The transfer whose readers follow; null when one is made in the end only. */
  readonly transferId: string | null;
  readonly maxBytes: number;
}

interface Lease {
  readonly id: string;
  /** The new writer's. */
  readonly lease: string;
  readonly seconds: number;
  /** The file to go on in when the one before cannot be trusted or does not exist. */
  readonly spareKey: string;
  /** Whether to go on in the file of the writer before, when that one has stopped in order. */
  readonly sameFile: boolean;
  /** The upload takes one writer in its life. */
  readonly once?: boolean;
  /** Comes in place of a writer that is still there: its pieces are not taken any more. */
  readonly takesOver?: boolean;
  /** Refuses unless so much is stored. */
  readonly offset?: number | undefined;
  /** Seconds until somebody looks whether the file is written. */
  readonly checkAfter: number;
}

/** Begins an append upload, from a row that must exist for it. */
export function insertAppend(sql: Sql, from: string, { id, transferId, maxBytes }: NewAppend) {
  return sql`insert into appends (id, transfer_id, max_bytes) select ${id}, ${transferId}::text, ${maxBytes}::bigint from ${sql(from)}`;
}

/** Ends the open append uploads that a condition names. */
export function endAppends(sql: Sql, how: 'complete' | 'failed', where: ReturnType<typeof appendColumns>) {
  return sql`update appends set state = ${how}, ended_at = now(), lease = null, lease_until = null where state = 'open' and ${where} returning id, received`;
}

/** The pieces as a transfer lists its segments. */
export function segmentsOfAppend(sql: Sql, id: string) {
  return sql`(select coalesce(jsonb_agg(jsonb_build_object('key', key, 'offset', key_offset, 'size', size) order by start), '[]') from pieces where append_id = ${id})`;
}

/** Gives the files of an append upload to its transfer; one that holds nothing of it becomes garbage. `append` is the row of its end. */
export function keepPieces(sql: Sql, append: string, transferId: string) {
  return sql`
    update blobs set
      state = case when blobs.key in (select pieces.key from pieces where append_id = upload_id) then 'live' else 'garbage' end,
      garbage_at = case when blobs.key in (select pieces.key from pieces where append_id = upload_id) then null else now() end,
      transfer_id = ${transferId}
    where upload_id = (select id from ${sql(append)}) and blobs.state <> 'garbage'`;
}

export function appendsStore(database: Database) {
  async function findAppend(id: string): Promise<Append | undefined> {
    return (await database.run((sql) => sql<Append[]>`select ${appendColumns(sql)} from appends where id = ${id}`))[0];
  }

  return {
    findAppend,

    /** Makes somebody the writer, when nobody is. A writer that went silent may still be writing into its file, so the next has one of its own. */
    async takeLease({ id, lease, seconds, spareKey, sameFile, once = false, takesOver = false, offset, checkAfter }: Lease): Promise<Append | undefined> {
      const rows = await database.run((sql) => sql<Append[]>`
        with free as (
          select id, ${sameFile}::boolean and lease is null and exists (select from blobs where blobs.key = appends.key and blobs.state = 'live') as same_file
          from appends
          where id = ${id} and state = 'open' and (lease is null or lease_until <= now() or ${takesOver}::boolean)
            and (key is null or not ${once}::boolean) and received = coalesce(${offset ?? null}::bigint, received)
          for update
        ), taken as (
          update appends set
            lease = ${lease}, lease_until = now() + make_interval(secs => ${seconds}::int),
            key = case when same_file then key else ${spareKey} end, key_start = case when same_file then key_start else received end
          from free where appends.id = free.id
          returning appends.*
        ), file as (
          insert into blobs (key, upload_id, transfer_id, check_after)
          select key, id, transfer_id, now() + make_interval(secs => ${checkAfter}::int) from taken where key = ${spareKey}
        )
        select ${appendColumns(sql)} from taken`);
      return rows[0];
    },

    /**
     * Records a piece at the end of what is stored, if its writer still holds the lease. Undefined when it does not, when the end is elsewhere,
     * or when the file was given up.
     * @param nextKey the file of the next piece, where every piece has one of its own
     */
    async recordPiece({ id, lease, offset, key, size }: Piece, next: { key: string | null; seconds: number; checkAfter: number }): Promise<Append | undefined> {
      const rows = await database.run((sql) => sql<Append[]>`
        with held as (
          select id, key_start from appends
          where id = ${id} and state = 'open' and lease = ${lease} and received = ${offset}::bigint and key = ${key} and received + ${size}::bigint <= max_bytes
          for update
        ), file as (
          update blobs set state = 'live' where key = ${key} and upload_id = (select id from held) and state <> 'garbage' returning key
        ), moved as (
          update appends set
            received = received + ${size}::bigint, lease_until = now() + make_interval(secs => ${next.seconds}::int),
            key = coalesce(${next.key}::text, key), key_start = case when ${next.key}::text is null then appends.key_start else received + ${size}::bigint end
          where id = (select id from held) and exists (select from file)
          returning *
        ), grown as (
          update pieces set size = size + ${size}::bigint
          where append_id = (select id from moved) and key = ${key}
            and start = (select start from pieces where append_id = ${id} order by start desc limit 1)
          returning start
        ), added as (
          insert into pieces (append_id, start, key, key_offset, size)
          select held.id, ${offset}::bigint, ${key}, ${offset}::bigint - held.key_start, ${size}::bigint from held, moved where not exists (select from grown)
        ), file_after as (
          insert into blobs (key, upload_id, transfer_id, check_after)
          select key, id, transfer_id, now() + make_interval(secs => ${next.checkAfter}::int) from moved where ${next.key}::text is not null
        )
        select ${appendColumns(sql)} from moved`);
      return rows[0];
    },

    /** Believes a writer for another while. Undefined when it is the writer no more. */
    async keepLease(id: string, lease: string, seconds: number): Promise<Append | undefined> {
      const rows = await database.run((sql) => sql<Append[]>`
        update appends set lease_until = now() + make_interval(secs => ${seconds}::int)
        where id = ${id} and state = 'open' and lease = ${lease} returning ${appendColumns(sql)}`);
      return rows[0];
    },

    /** Lets go of the lease. Answers whether it was held. */
    async releaseLease(id: string, lease: string): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        update appends set lease = null, lease_until = null where id = ${id} and state = 'open' and lease = ${lease} returning id`);
      return rows.length > 0;
    },

    /** The pieces that hold what comes from an offset on, in their order; the first one may begin before it. */
    async findPieces(id: string, from: number, limit: number): Promise<(Segment & { readonly start: number })[]> {
      return database.run((sql) => sql<(Segment & { start: number })[]>`
        select start, key, key_offset as offset, size from pieces where append_id = ${id} and start + size > ${from}::bigint order by start limit ${limit}`);
    },

    /** Forgets append uploads that ended long ago, with their pieces. Answers how many. */
    async purgeAppends(keepSeconds: number, limit: number): Promise<number> {
      const { count } = await database.run((sql) => sql`
        with ended as (
          delete from appends where id in (
            select id from appends where ended_at < now() - make_interval(secs => ${keepSeconds}::int) order by ended_at limit ${limit})
          returning id
        ), forgotten as (delete from pieces where append_id in (select id from ended))
        select id from ended`);
      return count;
    },
  };
}
