/** Waiting that an abort ends, and what an abort means to the caller. */
import type { EventEmitter } from 'node:events';
import { fail, Failure } from '../../../shared/errors.ts';

/** A signal that is aborted when time runs out, and says which. */
export function timeLimit(milliseconds: number, detail: string): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(fail('import_timed_out', { detail })), milliseconds).unref();
  return controller.signal;
}

/** Why a signal was aborted: the failure that it was aborted with, or else that time ran out. */
export function reasonOf(signal: AbortSignal): Failure {
  return signal.reason instanceof Failure ? signal.reason : fail('import_timed_out', {}, signal.reason);
}

/** The work's outcome, or the abort's failure if that comes first. The work itself goes on unwatched. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => undefined);
  let giveUp = () => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    giveUp = () => reject(reasonOf(signal));
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** The first argument of an event. Rejects when the emitter fails or closes before. */
export function once<T>(emitter: EventEmitter, event: string): Promise<T> {
  return new Promise((resolve, reject) => {
    emitter.once(event, resolve);
    emitter.once('error', reject);
    emitter.once('close', () => reject(new Error('closed before its time')));
  });
}
