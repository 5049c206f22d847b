/** What a service does by itself every few seconds: its steps one after the other, each on its own. */
import { randomBytes } from 'node:crypto';
import type { Logger } from './log.ts';
import type { CallContext } from './rpc.ts';

export type SweepSteps = Readonly<Record<string, () => Promise<unknown>>>;

/**
 * Runs the steps in their order every `seconds`. A sweep never overlaps the one before it, and a step that fails
 * does not keep the others from running. Any number of replicas may sweep; each row is taken by one.
 */
export function startSweeper(steps: SweepSteps, log: Logger, seconds: number): { stop(): Promise<void> } {
  let sweeping: Promise<void> | undefined;

  async function sweep(): Promise<void> {
    for (const [name, step] of Object.entries(steps)) {
      await step().catch((error: unknown) => log.warn({ err: error, step: name }, 'a sweep step failed and is tried again'));
    }
  }

  const timer = setInterval(() => {
    sweeping ??= sweep().finally(() => { sweeping = undefined; });
  }, seconds * 1_000);

  return {
    async stop() {
      clearInterval(timer);
      await sweeping;
    },
  };
}

/** A request of our own, with a trace of its own. */
export function sweepContext(): CallContext {
  return { requestId: `sweep-${randomBytes(8).toString('hex')}`, traceparent: `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00` };
}
