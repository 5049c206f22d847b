/** What a service does by itself every few seconds: its steps one after the other, each on its own. */
import type { Logger } from './log.ts';

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
