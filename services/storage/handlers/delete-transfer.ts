/** DELETE /api/dl/{id}: ends a transfer before its expiry, or takes a file out of its folder; again answers the same. Fetches under way end normally. */
import type { Handler, HandlerContext } from '../../../shared/contract.ts';
import { shares } from '../../../shared/contracts/shares.ts';
import type { transfers } from '../../../shared/contracts/transfers.ts';
import { eventOf, type DomainEvent } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';
import type { Transfer } from '../domain/transfer.ts';
import { ownContext } from './release-transfer.ts';
import { madeBySender } from './made-by-sender.ts';

export const deleteTransfer = (deps: Deps): Handler<typeof transfers.deleteTransfer> =>
  async function deleteTransfer(input, context) {
    const { id, deleteToken } = input;
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

async function endTransfer({ store, bus }: Deps, { id }: Transfer, event: DomainEvent, context: HandlerContext): Promise<void> {
  await store.deleteTransfer(id, event);
  await bus.call(shares.endShares, { targetIds: [id] }, ownContext(context));
  await store.settle([id], 'ended');
}
