/** Keeps the audit record's partitions: makes the coming months' and drops those past their retention. */
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import { keptSince, monthsAhead } from './domain/months.ts';
import type { PartitionStore } from './store/partitions.ts';

interface Deps {
  readonly store: PartitionStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 keeps everything. */
  readonly retentionDays: number;
}

/** Any number of replicas may do it at once: who comes second finds nothing to do. */
export async function keepPartitions({ store, clock, log, retentionDays }: Deps): Promise<void> {
  const now = clock();
  const made = await store.makePartitions(monthsAhead(now));
  const before = keptSince(now, retentionDays);
  const dropped = before === undefined ? [] : await store.dropPartitions(before);
  if (made > 0 || dropped.length > 0) log.info({ made, dropped }, 'partitions of the audit record changed');
}
