/** Spends uses and grants for fetches, and gives back what delivered nothing: behind the answer too, for as long as an outage may last. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AnswerOf, InputOf } from '../../shared/contract.ts';
import { shares } from '../../shared/contracts/shares.ts';
import { Failure } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { Bus, CallContext } from '../../shared/rpc.ts';

/** A refused client waits this long for its use to come back; after that it has its answer, and the use comes back behind it. */
const returnWaitMs = 1_500;
const returnTries = 16;
const returnAgainMs = 5_000;

/** No answer is not a no. */
const unknownOutcomes: readonly string[] = ['deadline_exceeded', 'service_unavailable', 'internal'];

export interface SpendingFetch extends InputOf<typeof shares.spendUse> {
  readonly context: CallContext;
}

export type Spent = AnswerOf<typeof shares.spendUse>;

export interface Uses {
  /** Spends what a fetch costs. What may have been spent by a call without an answer is given back, and cannot be spent any more. */
  spend(fetch: SpendingFetch): Promise<Spent>;
  /** Gives back what a fetch spent that delivers nothing. The client's next fetch depends on it, so its answer waits for it, within bounds. */
  giveBack(fetch: SpendingFetch): Promise<void>;
  /** Waits for what is still being given back. */
  drain(): Promise<void>;
}

export function openUses(bus: Bus, log: Logger): Uses {
  const returning = new Set<Promise<void>>();

  /** Tried for longer than an outage lasts: a use that is not returned is lost. */
  async function returnUse({ fetchId, context: { requestId, traceparent } }: SpendingFetch): Promise<void> {
    for (let attempt = 0; attempt < returnTries; attempt += 1) {
      try {
        await bus.call(shares.returnUse, { fetchId }, { requestId, traceparent });
        return;
      } catch (error) {
        log.warn({ err: error, fetchId, requestId }, 'a use could not be given back yet');
        await sleep(Math.min(250 * 2 ** attempt, returnAgainMs));
      }
    }
  }

  function beginReturn(fetch: SpendingFetch): Promise<void> {
    const work = returnUse(fetch).finally(() => returning.delete(work));
    returning.add(work);
    return work;
  }

  return {
    async spend({ context, ...fetch }) {
      try {
        return await bus.call(shares.spendUse, fetch, context);
      } catch (error) {
        if (error instanceof Failure && unknownOutcomes.includes(error.code)) void beginReturn({ ...fetch, context });
        throw error;
      }
    },
    async giveBack(fetch) {
      const waited = new AbortController();
      await Promise.race([beginReturn(fetch), sleep(returnWaitMs, undefined, { signal: waited.signal }).catch(() => undefined)]);
      waited.abort();
    },
    async drain() {
      await Promise.allSettled(returning);
    },
  };
}
