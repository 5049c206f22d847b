/** Files: known before they are written, given up when nobody finishes them, forgotten after they are removed. */
import type { Database } from '../../../shared/db.ts';

export function blobsStore(database: Database) {
  return {
    /** Names a file for the single lane. Answers false when the plan has begun a multipart upload. */
    async beginBlob(key: string, planId: string, checkAfterSeconds: number): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        insert into blobs (key, check_after)
        select ${key}, now() + make_interval(secs => ${checkAfterSeconds}::int)
        where not exists (select from uploads where plan_id = ${planId})
        returning key`);
      return rows.length > 0;
    },

    /** Gives up a file that is not part of anything. The main file of an upload, which has no time to be checked at, stays until its upload ends. */
    async discardBlob(key: string): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        update blobs set state = 'garbage', garbage_at = now()
        where key = ${key} and state = 'writing' and check_after is not null returning key`);
      return rows.length > 0;
    },

    /** Unfinished files that are due for a look, those that wait longest first. */
    async findUnfinished(limit: number): Promise<string[]> {
      const rows = await database.run((sql) => sql<{ key: string }[]>`
        select key from blobs where state = 'writing' and check_after <= now() order by check_after limit ${limit}`);
      return rows.map((row) => row.key);
    },

    /** Looks again later at files that somebody still writes. */
    async checkLater(keys: readonly string[], seconds: number): Promise<void> {
      await database.run((sql) => sql`
        update blobs set check_after = now() + make_interval(secs => ${seconds}::int)
        where key in (select key from blobs where key = any(${keys as string[]}) and state = 'writing' for update skip locked)`);
    },

    /** Gives up many files. One that somebody else is changing at this moment is left for the next look. */
    async discardBlobs(keys: readonly string[]): Promise<void> {
      await database.run((sql) => sql`
        update blobs set state = 'garbage', garbage_at = now()
        where key in (select key from blobs where key = any(${keys as string[]}) and state = 'writing' for update skip locked)`);
    },

    /** Says that a file is still being written. Answers whether it is wanted. */
    async touchBlob(key: string, checkAfterSeconds: number): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        update blobs set check_after = case when check_after is not null then now() + make_interval(secs => ${checkAfterSeconds}::int) end
        where key = ${key} and state = 'writing' returning key`);
      return rows.length > 0;
    },

    /** The session of the object store in which a file is put together. */
    async findSession(key: string): Promise<string | undefined> {
      const rows = await database.run((sql) => sql<{ session: string | null }[]>`select session from blobs where key = ${key} and state = 'writing'`);
      return rows[0]?.session ?? undefined;
    },

    /** Keeps a file's session; of two that were begun at once the first. Answers the one that counts, undefined when the file was given up. */
    async keepSession(key: string, session: string): Promise<string | undefined> {
      const rows = await database.run((sql) => sql<{ session: string }[]>`
        update blobs set session = coalesce(session, ${session}) where key = ${key} and state = 'writing' returning session`);
      return rows[0]?.session;
    },

    /** @param graceSeconds for which what was let go of is still read by a fetch that has just begun */
    async findGarbage(limit: number, graceSeconds = 0): Promise<string[]> {
      const rows = await database.run((sql) => sql<{ key: string }[]>`
        select key from blobs where state = 'garbage' and removed_at is null and garbage_at <= now() - make_interval(secs => ${graceSeconds}::int) order by garbage_at limit ${limit}`);
      return rows.map((row) => row.key);
    },

    async markRemoved(keys: readonly string[]): Promise<void> {
      await database.run((sql) => sql`update blobs set removed_at = now() where key = any(${keys as string[]}) and state = 'garbage'`);
    },

    /** Files removed long enough ago that every ticket for them has been opened or never will be. */
    async findRemoved(graceSeconds: number, limit: number): Promise<string[]> {
      const rows = await database.run((sql) => sql<{ key: string }[]>`
        select key from blobs where removed_at < now() - make_interval(secs => ${graceSeconds}::int) order by removed_at limit ${limit}`);
      return rows.map((row) => row.key);
    },

    async forgetBlobs(keys: readonly string[]): Promise<void> {
      await database.run((sql) => sql`delete from blobs where key = any(${keys as string[]}) and removed_at is not null`);
    },
  };
}
