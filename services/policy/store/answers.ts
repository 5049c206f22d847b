/** First answers of idempotent requests. */
import type { Database, Sql } from '../../../shared/db.ts';
import type { Operation } from '../../../shared/operation.ts';

export interface SealedAnswer extends Operation {
  readonly answer: Buffer;
}

/** The name of the constraint that a second claim of the same operation breaks. */
export const answerConstraint = 'answers_pkey';

export function answersStore(database: Database) {
  return {
    /** The sealed first answer of this operation, if it had one. */
    async findAnswer(scope: string): Promise<{ requestDigest: string; answer: Buffer } | undefined> {
      const rows = await database.run((sql) => sql<{ requestDigest: string; answer: Buffer }[]>`
        select request_digest as "requestDigest", answer from answers where scope = ${scope}`);
      return rows[0];
    },

    /** Records the answer of a request that changes nothing else. Breaks `answers_pkey` when another was first. */
    async recordAnswer(sealed: SealedAnswer): Promise<void> {
      await database.run((sql) => sql`insert into answers ${sql({ scope: sealed.scope, request_digest: sealed.requestDigest, answer: sealed.answer })}`);
    },

    async purgeAnswers(): Promise<void> {
      await database.run((sql) => sql`delete from answers where created_at < now() - interval '24 hours'`);
    },
  };
}

/**
 * The part of a statement that records the answer together with the change: `, answered as (insert …)`, or nothing.
 * A second run of the same operation breaks the constraint, and with it the whole statement.
 */
export function withAnswer(sql: Sql, sealed: SealedAnswer | undefined, changed: string) {
  return sealed
    ? sql`, answered as (
        insert into answers (scope, request_digest, answer)
        select ${sealed.scope}::text, ${sealed.requestDigest}::text, ${sealed.answer}::bytea from ${sql(changed)})`
    : sql``;
}

/**
 * Like `withAnswer`, for an answer that only the statement knows: what became of the row, as `json` makes it.
 * It stands in its table as well and holds no secret, so it is not sealed.
 */
export function withRowAnswer(sql: Sql, operation: Operation | undefined, changed: string, json: ReturnType<Sql>) {
  return operation
    ? sql`, answered as (
        insert into answers (scope, request_digest, answer)
        select ${operation.scope}::text, ${operation.requestDigest}::text, convert_to((${json})::text, 'UTF8') from ${sql(changed)})`
    : sql``;
}
