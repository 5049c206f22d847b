/** The transfer that a request of its sender is about. */
import type { HandlerContext } from '../../../shared/contract.ts';
import { fail } from '../../../shared/errors.ts';
import { isDeleteToken } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { mayDelete } from '../domain/access.ts';
import type { Transfer } from '../domain/transfer.ts';

/**
 * The transfer with this id, for whoever holds its delete token, its owner or the agent that made it.
 * Promise: only a caller with a good credential learns whether a transfer exists. A forged token costs no query.
 * @throws invalid_delete_token, delete_token_required, transfer_not_found
 */
export async function sentTransfer({ store, keys }: Pick<Deps, 'store' | 'keys'>, { id, deleteToken }: { id: string; deleteToken?: string | undefined }, { caller }: HandlerContext): Promise<Transfer> {
  if (deleteToken !== undefined && !isDeleteToken(deleteToken, id, keys.deleteToken)) throw fail('invalid_delete_token');
  if (deleteToken === undefined && caller.type === 'anonymous') throw fail('delete_token_required');
  const transfer = await store.findTransfer(id);
  if (!transfer) throw fail('transfer_not_found');
  if (deleteToken === undefined && !mayDelete(caller, transfer)) throw fail('delete_token_required');
  return transfer;
}
