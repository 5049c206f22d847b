/** Requests of callers, counted for all gateways together. */
import type { Database } from '../../../shared/db.ts';
import type { RateWindow } from '../domain/rate-window.ts';

export interface Wanted {
  readonly bucket: string;
  readonly limit: number;
  /** Seconds. */
  readonly window: number;
  readonly wanted: number;
}

export function rateCountsStore(database: Database) {
  return {
    /**
     * Promise: whatever number of gateways asks, no window grants more than the limit. What the window before has used still
     * counts by the part of it that lies within a window's length from now, so that two windows cannot be spent at their border.
     * A window begins with the first request, or where the one before ended.
     */
    async leaseRequests({ bucket, limit, window, wanted }: Wanted): Promise<RateWindow & { readonly granted: number }> {
      const rows = await database.run((sql) => sql<(RateWindow & { granted: number })[]>`
        insert into rate_counts as present (bucket, began, used, previous, granted, forget_at)
        values (${bucket}, now(), least(${wanted}::int, ${limit}::int), 0, least(${wanted}::int, ${limit}::int), now() + make_interval(secs => 2 * ${window}::int))
        on conflict (bucket) do update set (began, used, previous, granted, forget_at) = (
          select began, used + granted, previous, granted, began + make_interval(secs => 2 * ${window}::int)
          from (
            select turned.*, greatest(0, least(${wanted}::int, ${limit}::int - used
              - floor(previous * least(1, greatest(0, 1 - extract(epoch from now() - began) / ${window}::int)))))::int as granted
            from (
              select
                case when age < ${window}::int then present.began when age < 2 * ${window}::int then present.began + make_interval(secs => ${window}::int) else now() end as began,
                case when age < ${window}::int then present.used else 0 end as used,
                case when age < ${window}::int then present.previous when age < 2 * ${window}::int then present.used else 0 end as previous
              from (select extract(epoch from now() - present.began) as age) as aged
            ) as turned
          ) as counted
        )
        returning granted, used, previous, greatest(0, extract(epoch from now() - began))::float8 as elapsed`);
      return rows[0]!;
    },

    /** Forgets callers who sent nothing for two windows. */
    async purgeRateCounts(): Promise<void> {
      await database.run((sql) => sql`
        delete from rate_counts where bucket in (select bucket from rate_counts where forget_at < now() limit 20000) and forget_at < now()`);
    },
  };
}
