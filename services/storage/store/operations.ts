/** Which request an idempotency key came with first. */
import type { Database } from '../../../shared/db.ts';
import type { Operation } from '../../../shared/operation.ts';

export function operationsStore(database: Database) {
  return {
    /** Takes a key for a request. Answers whether it is this request's, now or since before. */
    async claimOperation({ scope, requestDigest }: Operation): Promise<boolean> {
      const rows = await database.run((sql) => sql<{ isSame: boolean }[]>`
        insert into operations (scope, request_digest) values (${scope}, ${requestDigest})
        -- Touches the row, so that it is answered whoever was first.
        on conflict (scope) do update set scope = excluded.scope
        returning request_digest = ${requestDigest} as "isSame"`);
      return rows[0]!.isSame;
    },

    /** Forgets keys whose answers nobody remembers. Answers how many. */
    async purgeOperations(keepSeconds: number, limit: number): Promise<number> {
      const { count } = await database.run((sql) => sql`
        delete from operations where scope in (
          select scope from operations where created_at < now() - make_interval(secs => ${keepSeconds}::int) order by created_at limit ${limit})`);
      return count;
    },
  };
}
