/**
 * Counts requests against one limit. Rooms are leased from the counter that all gateways share, a part of the window at a time, and
 * spent here: with a lease in hand a request costs a look-up and a subtraction.
 */
import type { Clock } from '../../shared/clock.ts';
import type { RateLimit, RateVerdict } from './domain/rate-limit.ts';
import { rememberRecent } from './recent.ts';

export interface Lease {
  readonly granted: number;
  readonly left: number;
  readonly endsInMs: number;
  readonly waitMs: number;
}

/** Takes rooms of a caller's window. Rejects when the counter is away. */
export type TakeLease = (request: RateLimit & { readonly bucket: string; readonly wanted: number }) => Promise<Lease>;

export interface CountOptions {
  readonly limit: RateLimit;
  readonly takeLease: TakeLease;
  readonly clock: Clock;
  /** Callers that are remembered; whoever is forgotten only loses the rest of a lease. */
  readonly maxCallers: number;
}

interface Account {
  rooms: number;
  /** What the counter still had when it was last asked. */
  beyond: number;
  /** When the lease ends, or when to ask again. */
  until: number;
  /** Without rooms nobody passes until then, and the counter is not asked. */
  refused: boolean;
  waiting: number;
  asking: Promise<void> | undefined;
}

/** A lease is this part of the limit, so that several gateways share a window fairly and a steady caller asks this often in it. */
const leasesInWindow = 20;
/** While the counter is away each gateway grants what the limit allows in this time, and then looks for the counter again. */
const aloneMs = 10_000;
/** After the counter did not answer, nobody waits for it for this long. */
const awayMs = 1_000;

export type CountRequest = (bucket: string) => RateVerdict | Promise<RateVerdict>;

export function makeCount({ limit, takeLease, clock, maxCallers }: CountOptions): CountRequest {
  const accounts = rememberRecent<Account>(maxCallers);
  const share = Math.ceil(limit.limit / leasesInWindow);
  let awayUntil = 0;

  async function ask(bucket: string, account: Account): Promise<void> {
    const asked = clock();
    if (asked < awayUntil) return grantAlone(account);
    try {
      const lease = await takeLease({ ...limit, bucket, wanted: Math.min(limit.limit, Math.max(share, account.waiting)) });
      account.rooms = lease.granted;
      account.beyond = lease.left;
      account.refused = lease.granted === 0;
      // A lease is counted from before the question: it ends here no later than its window does there.
      account.until = account.refused ? clock() + Math.max(1, lease.waitMs) : asked + lease.endsInMs;
    } catch {
      awayUntil = clock() + awayMs;
      grantAlone(account);
    }
  }

  /** Promise: a counter that is away refuses nobody. It would turn its own outage into everybody's; the limit holds in each gateway meanwhile. */
  function grantAlone(account: Account): void {
    const windowMs = limit.window * 1_000;
    const lasts = Math.min(windowMs, Math.max(aloneMs, windowMs / limit.limit));
    account.rooms = Math.max(1, Math.floor((limit.limit * lasts) / windowMs));
    account.beyond = 0;
    account.refused = true;
    account.until = clock() + lasts;
  }

  function spend(account: Account, now: number): RateVerdict | undefined {
    if (now >= account.until) return undefined;
    if (account.rooms > 0) {
      account.rooms -= 1;
      return { passes: true, left: account.rooms + account.beyond, seconds: secondsUntil(account.until, now) };
    }
    return account.refused ? { passes: false, left: 0, seconds: secondsUntil(account.until, now) } : undefined;
  }

  async function askAndSpend(bucket: string, account: Account): Promise<RateVerdict> {
    account.waiting += 1;
    try {
      for (;;) {
        account.asking ??= ask(bucket, account).finally(() => { account.asking = undefined; });
        await account.asking;
        const verdict = spend(account, clock());
        if (verdict) return verdict;
      }
    } finally {
      account.waiting -= 1;
    }
  }

  return function count(bucket) {
    let account = accounts.get(bucket);
    if (!account) {
      account = { rooms: 0, beyond: 0, until: 0, refused: false, waiting: 0, asking: undefined };
      accounts.set(bucket, account);
    }
    return spend(account, clock()) ?? askAndSpend(bucket, account);
  };
}

function secondsUntil(time: number, now: number): number {
  return Math.max(1, Math.ceil((time - now) / 1_000));
}
