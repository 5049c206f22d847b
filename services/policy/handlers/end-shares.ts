/** Ends the shares of transfers that were deleted: resolve and fetch find nothing from then on. */
import type { Handler } from '../../../shared/contract.ts';
import type { shares } from '../../../shared/contracts/shares.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';

export const endShares = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof shares.endShares> =>
  async function endShares({ targetIds }, context) {
    const event = eventOf(context, clock(), { eventType: 'share.ended', targetType: 'share', targetId: null });
    return { ended: await store.endShares(targetIds, { ...event, actor: { type: 'service', id: 'storage' } }) };
  };
