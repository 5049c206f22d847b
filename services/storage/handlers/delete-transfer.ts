/** DELETE /api/dl/{id}: ends a transfer before its expiry, or takes a file out of its folder; again answers the same. Fetches under way end normally, but those of a pipe whose bytes still come. */
import type { Handler, HandlerContext } from '../../../shared/contract.ts';
import { shares } from '../../../shared/contracts/shares.ts';
import type { transfers } from '../../../shared/contracts/transfers.ts';
import { eventOf, type DomainEvent } from '../../../shared/events.ts';
import { ownContext, type CallContext } from '../../../shared/rpc.ts';
import type { Deps } from '../deps.ts';
import type { Transfer } from '../domain/transfer.ts';
import { madeBySender } from './made-by-sender.ts';

export const deleteTransfer = (deps: Deps): Handler<typeof transfers.deleteTransfer> =>
  async function deleteTransfer({ id, deleteToken }, context) {
    const transfer = await madeBySender(deps, { id, deleteToken, find: deps.store.findTransfer, absent: 'transfer_not_found' }, context);
    const event = deletionOf(deps, transfer, context);
    await (transfer.folderId === null ? endTransfer(deps, transfer, event, context) : deps.store.deleteFile(id, event));
    return { id, deleted: true };
  };

function deletionOf({ clock }: Deps, { id, shareId, kind, size, lane, folderId, ownerId, agentId }: Transfer, context: HandlerContext): DomainEvent {
  return eventOf(context, clock(), {
    eventType: 'transfer.deleted', targetType: kind, targetId: id, shareId, ownerId, agentId, data: { size, lane, ...(folderId && { folderId }) },
  });
}

async function endTransfer(deps: Deps, { id, kind }: Transfer, event: DomainEvent, context: HandlerContext): Promise<void> {
  await deps.store.deleteTransfer(id, event);
  if (kind === 'pipe') deps.wakePipe(id);
  await endShare(deps, id, ownContext(context));
}

/** Ends the share of a transfer that has ended. What is left of it when this fails, the sweeper does. */
export async function endShare({ bus, store }: Pick<Deps, 'bus' | 'store'>, transferId: string, context: CallContext): Promise<void> {
  await bus.call(shares.endShares, { targetIds: [transferId] }, context);
  await store.settle([transferId], 'ended');
}
