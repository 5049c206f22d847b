/** DELETE /api/dl/{id}: ends a transfer before its expiry; again answers the same. Fetches under way end normally. */
import type { Handler, HandlerContext, InputOf } from '../../../shared/contract.ts';
import { shares } from '../../../shared/contracts/shares.ts';
import type { transfers } from '../../../shared/contracts/transfers.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { ownContext } from '../../../shared/rpc.ts';
import { isDeleteToken } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { mayDelete } from '../domain/access.ts';
import type { Transfer } from '../domain/transfer.ts';

export const deleteTransfer = (deps: Deps): Handler<typeof transfers.deleteTransfer> =>
  async function deleteTransfer(input, context) {
    const { store, bus, clock } = deps;
    const transfer = await deletableTransfer(deps, input, context);
    const { id, shareId, kind, size, lane } = transfer;
    await store.deleteTransfer(id, eventOf(context, clock(), { eventType: 'transfer.deleted', targetType: kind, targetId: id, shareId, data: { size, lane } }));
    await bus.call(shares.endShares, { targetIds: [id] }, ownContext(context));
    await store.settle([id], 'ended');
    return { id, deleted: true };
  };

/** Promise: only a caller with a good credential learns whether a transfer exists. A forged token costs no query. */
async function deletableTransfer({ store, keys }: Deps, { id, deleteToken }: InputOf<typeof transfers.deleteTransfer>, { caller }: HandlerContext): Promise<Transfer> {
  if (deleteToken !== undefined && !isDeleteToken(deleteToken, id, keys.deleteToken)) throw fail('invalid_delete_token');
  if (deleteToken === undefined && caller.type === 'anonymous') throw fail('delete_token_required');
  const transfer = await store.findTransfer(id);
  if (!transfer) throw fail('transfer_not_found');
  if (deleteToken === undefined && !mayDelete(caller, transfer)) throw fail('delete_token_required');
  return transfer;
}
