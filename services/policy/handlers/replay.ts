/** Answers a repeated request with its first answer (interface chapter: Limits, idempotency). */
import type { HandlerContext } from '../../../shared/contract.ts';
import { isDuplicate } from '../../../shared/db.ts';
import { errorTable, fail, Failure } from '../../../shared/errors.ts';
import { operationOf, type Operation } from '../../../shared/operation.ts';
import type { Deps } from '../deps.ts';
import { openAnswer, sealAnswer } from '../domain/sealed-answer.ts';
import { answerConstraint, type SealedAnswer } from '../store/answers.ts';

interface Attempt<T> {
  readonly contract: string;
  readonly input: unknown;
  readonly context: HandlerContext;
  /** Makes the change and answers; `seal` makes what the change's statement records as its answer, unless it records the row itself under `operation`. */
  readonly make: (seal: (answer: T) => SealedAnswer | undefined, operation: Operation | undefined) => Promise<T>;
  /** Reads an answer that the statement recorded of its row. Absent when the answer is sealed. */
  readonly read?: (row: unknown) => T;
}

/**
 * Runs a creating request once for each operation id. Without an id it simply runs.
 * The answer is recorded in the statement of the change; whoever loses the race reads the winner's.
 * @throws idempotency_key_reused when the id was used for another request, or its answer cannot be opened any more
 */
export async function replayOr<T>({ store, keys }: Pick<Deps, 'store' | 'keys'>, attempt: Attempt<T>): Promise<T> {
  const { operationId, caller, address } = attempt.context;
  if (!operationId) return attempt.make(() => undefined, undefined);
  const operation = operationOf({ caller, operationId, contract: attempt.contract, input: attempt.input, ...(address && { address }) });

  async function firstAnswer(): Promise<T | undefined> {
    const found = await store.findAnswer(operation.scope);
    if (!found) return undefined;
    if (found.requestDigest !== operation.requestDigest) throw fail('idempotency_key_reused');
    if (attempt.read) return attempt.read(JSON.parse(found.answer.toString('utf8')));
    const answer = openAnswer(found.answer, operation, keys.answer);
    // Sealed under a key that is gone: the change was made, and what it answered cannot be said again.
    if (answer === undefined) throw fail('idempotency_key_reused');
    return answer as T;
  }

  const first = await firstAnswer();
  if (first) return first;
  try {
    return await attempt.make((answer) => ({ ...operation, answer: sealAnswer(answer, operation, keys.answer) }), operation);
  } catch (error) {
    // A refusal may come of the same request having gone through a moment ago: a member is not added twice.
    if (!isDuplicate(error, answerConstraint) && !isRefusal(error)) throw error;
    const winner = await firstAnswer();
    if (!winner) throw error;
    return winner;
  }
}

const isRefusal = (error: unknown) => error instanceof Failure && errorTable[error.code].status < 500;
