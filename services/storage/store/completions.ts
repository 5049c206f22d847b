/** The queue of commands to complete files: accepted once, claimed by one process at a time, claimed again when that one is gone. */
import type { Database, Sql } from '../../../shared/db.ts';
import type { Command, Completion } from '../domain/completion.ts';

const completionColumns = (sql: Sql) => sql`
  folder_id as "folderId", operation_id as "operationId", file_id as "fileId", upload_id as "uploadId", state, attempts, error, request`;

/** The part of a statement that ends a command, in the statement that does what it asks, where that made the row `stored`. */
export function finishCompletion(sql: Sql, { folderId, operationId }: Command, stored: string) {
  return sql`
    update completions set state = 'ready' where folder_id = ${folderId} and operation_id = ${operationId} and exists (select from ${sql(stored)})`;
}

export function completionsStore(database: Database) {
  return {
    /** Accepts a command, or answers the one that its operation id belongs to since before. */
    async acceptCompletion({ folderId, operationId, fileId, uploadId }: Command, request: Completion['request']): Promise<Completion> {
      const rows = await database.run((sql) => sql<Completion[]>`
        insert into completions (folder_id, operation_id, file_id, upload_id, request)
        values (${folderId}, ${operationId}, ${fileId}, ${uploadId}, ${sql.json(request as never)})
        -- Touches the row, so that it is answered whoever was first.
        on conflict (folder_id, operation_id) do update set operation_id = excluded.operation_id
        returning ${completionColumns(sql)}`);
      return rows[0]!;
    },

    async findCompletion(folderId: string, operationId: string): Promise<Completion | undefined> {
      const rows = await database.run((sql) => sql<Completion[]>`
        select ${completionColumns(sql)} from completions where folder_id = ${folderId} and operation_id = ${operationId}`);
      return rows[0];
    },

    /** Takes commands that are due, for so many seconds. Those of a process that was killed become due with the end of its lease. */
    async claimCompletions(limit: number, leaseSeconds: number): Promise<Completion[]> {
      return database.run((sql) => sql<Completion[]>`
        update completions set state = 'running', attempts = attempts + 1, run_after = now() + make_interval(secs => ${leaseSeconds}::int)
        where (folder_id, operation_id) in (
          select folder_id, operation_id from completions
          where state in ('accepted', 'running') and run_after <= now() order by run_after limit ${limit} for update skip locked)
        returning ${completionColumns(sql)}`);
    },

    /** Ends a command whose work is done already, or that cannot be carried out. */
    async endCompletion({ folderId, operationId }: Command, error: Completion['error']): Promise<void> {
      await database.run((sql) => sql`
        update completions set state = ${error ? 'failed' : 'ready'}, error = ${error ? sql.json(error as never) : null}
        where folder_id = ${folderId} and operation_id = ${operationId} and state in ('accepted', 'running')`);
    },

    /** Has a command tried again later. */
    async retryCompletion({ folderId, operationId }: Command, pauseSeconds: number): Promise<void> {
      await database.run((sql) => sql`
        update completions set state = 'accepted', run_after = now() + make_interval(secs => ${pauseSeconds}::double precision)
        where folder_id = ${folderId} and operation_id = ${operationId} and state = 'running'`);
    },

    /** Forgets commands that were done long ago. Answers how many. */
    async purgeCompletions(keepSeconds: number, limit: number): Promise<number> {
      const { count } = await database.run((sql) => sql`
        delete from completions where (folder_id, operation_id) in (
          select folder_id, operation_id from completions
          where created_at < now() - make_interval(secs => ${keepSeconds}::int) and state in ('ready', 'failed') order by created_at limit ${limit})`);
      return count;
    },
  };
}
