/** Gives back the use or grant of a fetch that delivered nothing. */
import type { Handler } from '../../../shared/contract.ts';
import type { shares } from '../../../shared/contracts/shares.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';

export const returnUse = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof shares.returnUse> =>
  async function returnUse({ fetchId }, context) {
    const event = eventOf(context, clock(), {
      eventType: 'transfer.fetched', targetType: 'file', targetId: null, outcome: 'error', data: { fetchId, returned: true },
    });
    return { returned: await store.returnUse(fetchId, { ...event, actor: { type: 'service', id: 'gateway' } }) };
  };
