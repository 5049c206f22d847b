/** Imports: run by one at a time, ended once for each run. */
import type { Database } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import { tell } from '../../../shared/tell.ts';

/** What is known of an import before it runs. */
export interface NewImport {
  readonly planId: string;
  readonly transferId: string;
  readonly shareId: string;
  readonly ownerId: string | null;
  readonly agentId: string | null;
  readonly host: string;
}

/** An import and which run of it this is. */
export interface Run {
  readonly planId: string;
  readonly attempt: number;
}

export type AbandonedImport = NewImport & Run;
/** A run whose lease is over counts as abandoned, whether or not anybody has settled it. */
export type ImportState = 'running' | 'abandoned' | 'completed' | 'failed';

export type Store = ReturnType<typeof importsStore>;

export function importsStore(database: Database) {
  return {
    /** Begins a run, unless one goes on or one was completed. Answers which run it is. */
    async claimImport({ planId, transferId, shareId, ownerId, agentId, host }: NewImport, leaseSeconds: number): Promise<number | undefined> {
      const rows = await database.run((sql) => sql<{ attempt: number }[]>`
        insert into imports (plan_id, transfer_id, share_id, owner_id, agent_id, host, lease_until)
        values (${planId}, ${transferId}, ${shareId}, ${ownerId}, ${agentId}, ${host}, now() + make_interval(secs => ${leaseSeconds}::int))
        on conflict (plan_id) do update set
          state = 'running', ended_at = null, attempt = imports.attempt + 1, lease_until = excluded.lease_until
        where imports.state = 'failed' or (imports.state = 'running' and imports.lease_until <= now())
        returning attempt`);
      return rows[0]?.attempt;
    },

    async findState(planId: string): Promise<ImportState | undefined> {
      const rows = await database.run((sql) => sql<{ state: ImportState }[]>`
        select case when state = 'running' and lease_until <= now() then 'abandoned' else state end as state from imports where plan_id = ${planId}`);
      return rows[0]?.state;
    },

    /** Answers whether the run still has the import. */
    async renewLease({ planId, attempt }: Run, leaseSeconds: number): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        update imports set lease_until = now() + make_interval(secs => ${leaseSeconds}::int)
        where plan_id = ${planId} and attempt = ${attempt} and state = 'running' returning plan_id`);
      return rows.length > 0;
    },

    /** Ends a run with its event. A run that has lost the import changes nothing and tells nothing. */
    async endImport({ planId, attempt }: Run, state: 'completed' | 'failed', event: DomainEvent): Promise<void> {
      await database.run((sql) => sql`
        with ended as (
          update imports set state = ${state}, ended_at = now()
          where plan_id = ${planId} and attempt = ${attempt} and state = 'running' returning plan_id
        ), told as (${tell(sql, 'ended', event)})
        select plan_id from ended`);
    },

    /** Runs whose process is gone. */
    findAbandoned: (limit: number) => database.run((sql) => sql<AbandonedImport[]>`
      select plan_id as "planId", transfer_id as "transferId", share_id as "shareId", owner_id as "ownerId", agent_id as "agentId", host, attempt
      from imports where state = 'running' and lease_until <= now() order by lease_until limit ${limit}`),

    /** Forgets imports that nobody can ask for any more. */
    async purgeImports(keepSeconds: number): Promise<void> {
      await database.run((sql) => sql`delete from imports where ended_at < now() - make_interval(secs => ${keepSeconds}::int)`);
    },
  };
}
