/** Tries at signing in, by account and by address, counted for all replicas together. */
import type postgres from 'postgres';
import type { Database, Sql } from '../../../shared/db.ts';
import type { TryLimit } from './passcode-tries.ts';

/** Whose password is tried, and from where. */
export interface Trier {
  readonly email: string;
  /** A network, as `networkOf` names it. */
  readonly network: string;
}

export interface SignInLimits {
  readonly account: TryLimit;
  readonly address: TryLimit;
}

/** A try that may be made, in the windows that began then; or the seconds until the next may. */
export type ClaimedSignIn = { readonly accountSince: string; readonly addressSince: string } | { readonly retryAfter: number };

export function signInTriesStore(database: Database) {
  return {
    /**
     * Claims a try before it is made, so that no number of replicas and of racers together makes more of them than may fail.
     * An account need not exist. What an address may not try any more is not counted against the account; a try at an account that is
     * locked is counted against the address.
     */
    async claimSignIn({ email, network }: Trier, { account, address }: SignInLimits): Promise<ClaimedSignIn> {
      const rows = await database.run((sql) => sql<{ accountSince: string | null; addressSince: string | null; retryAfter: number | null }[]>`
        with keys as (select ${addressKey(sql, network)} as address, ${accountKey(sql, email)} as account),
        by_address as (${claim(sql, sql`select address, 1 from keys`, address)}),
        by_account as (${claim(sql, sql`select keys.account, 1 from keys, by_address`, account)})
        select (select since::text from by_account) as "accountSince", (select since::text from by_address) as "addressSince", (
          select ceil(extract(epoch from since + make_interval(secs => case when tried = keys.address then ${address.window}::int else ${account.window}::int end) - now()))::int
          from sign_in_tries, keys
          where tried = case when exists (select from by_address) then keys.account else keys.address end
        ) as "retryAfter"`);
      const { accountSince, addressSince, retryAfter } = rows[0]!;
      return accountSince && addressSince ? { accountSince, addressSince } : { retryAfter: Math.max(1, retryAfter ?? 1) };
    },

    /** Gives back a try that was right: only failures count. Two statements of one row each, since together they could wait for a claim that waits for them. */
    async returnSignIn({ email, network }: Trier, claimed: { accountSince: string; addressSince: string }): Promise<void> {
      const giveBack = (keyOf: (sql: Sql) => postgres.PendingQuery<postgres.Row[]>, since: string) => database.run((sql) => sql`
        update sign_in_tries set tries = tries - 1 where tried = ${keyOf(sql)} and since = ${since}::text::timestamptz and tries > 0`);
      await Promise.all([
        giveBack((sql) => accountKey(sql, email), claimed.accountSince),
        giveBack((sql) => addressKey(sql, network), claimed.addressSince),
      ]);
    },

    /** Forgets windows that are over, whatever their length. */
    async purgeSignInTries(): Promise<void> {
      await database.run((sql) => sql`
        delete from sign_in_tries where tried in (select tried from sign_in_tries where since < now() - interval '1 day' limit 5000)`);
    },
  };
}

/** As accounts are told apart: however the e-mail is written. A digest, since what strangers type in need not be kept. */
const accountKey = (sql: Sql, email: string) => sql`'account ' || encode(sha256(convert_to(lower(${email}::text), 'UTF8')), 'hex')`;
const addressKey = (sql: Sql, network: string) => sql`'address ' || ${network}::text`;

/** One more in the window, or the first of a new one; nothing when the window is full. */
function claim(sql: Sql, row: postgres.PendingQuery<postgres.Row[]>, { tries, window }: TryLimit) {
  const isOver = sql`present.since <= now() - make_interval(secs => ${window}::int)`;
  return sql`
    insert into sign_in_tries as present (tried, tries) ${row}
    on conflict (tried) do update set
      tries = case when ${isOver} then 1 else present.tries + 1 end,
      since = case when ${isOver} then now() else present.since end
    where ${isOver} or present.tries < ${tries}::int
    returning since`;
}
