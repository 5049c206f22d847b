/** DELETE /api/dl/{id}: ends a transfer before its expiry; again answers the same. Fetches under way end normally, but those of a pipe whose bytes still come. */
import type { Handler } from '../../../shared/contract.ts';
import { shares } from '../../../shared/contracts/shares.ts';
import type { transfers } from '../../../shared/contracts/transfers.ts';
import { eventOf } from '../../../shared/events.ts';
import type { CallContext } from '../../../shared/rpc.ts';
import type { Deps } from '../deps.ts';
import { ownContext } from './release-transfer.ts';
import { sentTransfer } from './sent-transfer.ts';

export const deleteTransfer = (deps: Deps): Handler<typeof transfers.deleteTransfer> =>
  async function deleteTransfer(input, context) {
    const { store, clock, wakePipe } = deps;
    const transfer = await sentTransfer(deps, input, context);
    const { id, shareId, kind, size, lane } = transfer;
    await store.deleteTransfer(id, eventOf(context, clock(), { eventType: 'transfer.deleted', targetType: kind, targetId: id, shareId, data: { size, lane } }));
    if (kind === 'pipe') wakePipe(id);
    await endShare(deps, id, ownContext(context));
    return { id, deleted: true };
  };

/** Ends the share of a transfer that has ended. What is left of it when this fails, the sweeper does. */
export async function endShare({ bus, store }: Pick<Deps, 'bus' | 'store'>, transferId: string, context: CallContext): Promise<void> {
  await bus.call(shares.endShares, { targetIds: [transferId] }, context);
  await store.settle([transferId], 'ended');
}
