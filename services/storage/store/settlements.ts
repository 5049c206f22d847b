/** What the policy service has yet to confirm of transfers' shares. */
import type { Database } from '../../../shared/db.ts';
import type { Transfer } from '../domain/transfer.ts';
import { transferColumns } from './transfers.ts';

export type Wanted = 'created' | 'ended';

export function settlementsStore(database: Database) {
  return {
    /**
     * Records what is settled, unless something else is wanted by now. Uploads whose share exists are completed by it.
     * Rows that another replica is settling at this moment are left to it: two that waited for each other's would never end.
     */
    async settle(transferIds: readonly string[], wanted: Wanted): Promise<void> {
      await database.run((sql) => sql`
        with due as (
          select transfer_id from settlements where transfer_id = any(${transferIds as string[]}) and wanted = ${wanted} for update skip locked
        ), settled as (
          delete from settlements using due where settlements.transfer_id = due.transfer_id returning due.transfer_id
        )
        update uploads set state = 'completed' where state = 'completing' and transfer_id in (select transfer_id from settled)`);
    },

    /** Transfers that a crash or an outage left without a share. */
    async findUnshared(afterSeconds: number, limit: number): Promise<Transfer[]> {
      return database.run((sql) => sql<Transfer[]>`
        select ${transferColumns(sql)} from transfers
        where id in (
          select transfer_id from settlements
          where wanted = 'created' and since <= now() - make_interval(secs => ${afterSeconds}::int) order by since limit ${limit}
        )`);
    },

    /** Deleted transfers whose share may not have ended. */
    async findUnended(afterSeconds: number, limit: number): Promise<string[]> {
      const rows = await database.run((sql) => sql<{ id: string }[]>`
        select transfer_id as id from settlements
        where wanted = 'ended' and since <= now() - make_interval(secs => ${afterSeconds}::int) order by since limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Puts what could not be settled behind everything else that waits. */
    async settleLater(transferIds: readonly string[]): Promise<void> {
      await database.run((sql) => sql`update settlements set since = now() where transfer_id = any(${transferIds as string[]})`);
    },
  };
}
