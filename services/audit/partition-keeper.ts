/** Keeps the audit record's partitions: makes the coming months' and drops those past their retention. */
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import { keptSince, monthsAhead } from './domain/months.ts';
import type { PartitionStore } from './store/partitions.ts';

const everyMs = 3_600_000;

interface Deps {
  readonly store: PartitionStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 keeps everything. */
  readonly retentionDays: number;
}

/** Starts keeping, now and every hour. Any number of replicas may: who comes second finds nothing to do. */
export function startPartitionKeeper(deps: Deps): { stop(): Promise<void> } {
  let keeping: Promise<void> | undefined;
  const keep = () => {
    keeping ??= keepPartitions(deps)
      .catch((error: unknown) => deps.log.warn({ err: error }, 'partitions could not be kept and are looked at again'))
      .finally(() => { keeping = undefined; });
  };
  keep();
  const timer = setInterval(keep, everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await keeping;
    },
  };
}

async function keepPartitions({ store, clock, log, retentionDays }: Deps): Promise<void> {
  const now = clock();
  const made = await store.makePartitions(monthsAhead(now));
  const before = keptSince(now, retentionDays);
  const dropped = before === undefined ? [] : await store.dropPartitions(before);
  if (made > 0 || dropped.length > 0) log.info({ made, dropped }, 'partitions of the audit record changed');
}
