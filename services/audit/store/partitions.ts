/** The partitions of the audit record: one a month, made before they are needed and dropped whole. */
import type { Database } from '../../../shared/db.ts';

export interface PartitionStore {
  /** Makes the partitions of the months that the times lie in; those that are there stay as they are. Answers how many were made. */
  makePartitions(times: readonly string[]): Promise<number>;
  /** Drops what ended at a time or before. Answers the names of what was dropped. */
  dropPartitions(before: string): Promise<string[]>;
}

export function openPartitionStore(database: Pick<Database, 'run'>): PartitionStore {
  return {
    async makePartitions(times) {
      const made = await database.run((sql) => sql<{ made: boolean }[]>`
        select make_event_partition(at::timestamptz) as made from jsonb_array_elements_text(${JSON.stringify(times)}::text::jsonb) as at`);
      return made.filter((row) => row.made).length;
    },
    async dropPartitions(before) {
      const dropped = await database.run((sql) => sql<{ name: string }[]>`select drop_event_partitions(${before}::timestamptz) as name`);
      return dropped.map((row) => row.name);
    },
  };
}
