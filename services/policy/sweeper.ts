/** What policy does by itself: ends shares at their expiry, and forgets what nobody can ask for any more. */
import { eventOfService } from '../../shared/events.ts';
import type { SweepSteps } from '../../shared/sweeper.ts';
import type { Deps } from './deps.ts';

export function sweepSteps({ store, clock }: Pick<Deps, 'store' | 'clock'>): SweepSteps {
  return {
    expireShares: () => store.expireShares(eventOfService('policy', clock(), { eventType: 'share.expired', targetType: 'share', targetId: null })),
    purgeShares: store.purgeShares,
    purgeFetches: store.purgeFetches,
    purgeTries: store.purgeTries,
    purgeRateCounts: store.purgeRateCounts,
    purgeSignInTries: store.purgeSignInTries,
    purgeReturns: store.purgeReturns,
    purgeAnswers: store.purgeAnswers,
    purgeSessions: store.purgeSessions,
  };
}
