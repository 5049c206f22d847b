/** Makes a call whose outcome is unknown once more: a service that restarts must not cost a client its stream. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fail, Failure } from '../../shared/errors.ts';

const againMs = 250;
const unknownOutcomes: readonly string[] = ['deadline_exceeded', 'service_unavailable', 'overloaded'];

/** Whether a call may have happened, or may yet. */
export function isUnknown(error: unknown): boolean {
  return error instanceof Failure && unknownOutcomes.includes(error.code);
}

/**
 * Repeats an idempotent call for so many seconds while nobody answers it.
 * @throws service_unavailable when nobody did
 */
export async function insist<T>(call: () => Promise<T>, seconds: number): Promise<T> {
  for (const until = Date.now() + seconds * 1_000; ; await sleep(againMs)) {
    try {
      return await call();
    } catch (error) {
      if (!isUnknown(error)) throw error;
      if (Date.now() + againMs > until) throw fail('service_unavailable', {}, error);
    }
  }
}
