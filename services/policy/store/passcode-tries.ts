/** Tries at the passcodes of shares, counted for all replicas together. */
import type { Database } from '../../../shared/db.ts';

/** So many tries may fail within so many seconds. */
export interface TryLimit {
  readonly tries: number;
  readonly window: number;
}

/** A try that may be made, in the window that began at `since`; or the seconds until the next may. */
export type ClaimedTry = { readonly since: string } | { readonly retryAfter: number };

export function passcodeTriesStore(database: Database) {
  return {
    /** Claims a try before it is made, so that no number of replicas and of racers together makes more of them than may fail. */
    async claimTry(shareId: string, { tries, window }: TryLimit): Promise<ClaimedTry> {
      const rows = await database.run((sql) => sql<{ since: string | null; retryAfter: number | null }[]>`
        with claimed as (
          insert into passcode_tries as present (share_id, tries) values (${shareId}, 1)
          on conflict (share_id) do update set
            tries = case when present.since <= now() - make_interval(secs => ${window}::int) then 1 else present.tries + 1 end,
            since = case when present.since <= now() - make_interval(secs => ${window}::int) then now() else present.since end
          where present.since <= now() - make_interval(secs => ${window}::int) or present.tries < ${tries}::int
          returning since
        )
        select (select since::text from claimed) as since, (
          select ceil(extract(epoch from since + make_interval(secs => ${window}::int) - now()))::int from passcode_tries where share_id = ${shareId}
        ) as "retryAfter"`);
      const { since, retryAfter } = rows[0]!;
      return since === null ? { retryAfter: Math.max(1, retryAfter ?? window) } : { since };
    },

    /** Gives back a try that was right: only failures count. */
    async returnTry(shareId: string, { since }: { since: string }): Promise<void> {
      await database.run((sql) => sql`
        update passcode_tries set tries = tries - 1 where share_id = ${shareId} and since = ${since}::text::timestamptz and tries > 0`);
    },

    /** Forgets windows that are over, whatever their length. */
    async purgeTries(): Promise<void> {
      await database.run((sql) => sql`
        delete from passcode_tries where share_id in (select share_id from passcode_tries where since < now() - interval '1 day' limit 5000)`);
    },
  };
}
