/** Ends shares at their expiry and forgets what nobody can ask for any more. */
import { eventOfService } from '../../shared/events.ts';
import type { Logger } from '../../shared/log.ts';
import type { Deps } from './deps.ts';

/** Starts sweeping every `seconds`. Any number of replicas may; each row is taken by one. */
export function startSweeper({ store, clock }: Pick<Deps, 'store' | 'clock'>, log: Logger, seconds: number): { stop(): Promise<void> } {
  const steps: Record<string, () => Promise<unknown>> = {
    expireShares: () => store.expireShares(eventOfService('policy', clock(), { eventType: 'share.expired', targetType: 'share', targetId: null })),
    purgeShares: store.purgeShares,
    purgeFetches: store.purgeFetches,
    purgeTries: store.purgeTries,
    purgeAnswers: store.purgeAnswers,
    purgeSessions: store.purgeSessions,
  };
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
