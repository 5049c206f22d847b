/** What a request of its sender is about: found, when its caller may change it. */
import type { HandlerContext } from '../../../shared/contract.ts';
import { fail, type ErrorCode } from '../../../shared/errors.ts';
import { isDeleteToken } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { mayDelete } from '../domain/access.ts';
import type { Transfer } from '../domain/transfer.ts';

interface Wanted<T> {
  readonly id: string;
  readonly deleteToken: string | undefined;
  readonly find: (id: string) => Promise<T | undefined>;
  readonly absent: ErrorCode;
}

/**
 * Promise: only a caller with a good credential learns whether something exists. The delete token of a folder is good for each of its files, too;
 * a forged one of anything else costs no query.
 * @throws delete_token_required, invalid_delete_token
 */
export async function madeBySender<T extends Pick<Transfer, 'ownerId' | 'agentId' | 'folderId'>>(
  { keys }: Pick<Deps, 'keys'>, { id, deleteToken, find, absent }: Wanted<T>, { caller }: HandlerContext,
): Promise<T> {
  const isToken = (ofId: string) => deleteToken !== undefined && isDeleteToken(deleteToken, ofId, keys.deleteToken);
  const isFile = id.startsWith('fil_');
  if (deleteToken !== undefined && !isFile && !isToken(id)) throw fail('invalid_delete_token');
  if (deleteToken === undefined && caller.type === 'anonymous') throw fail('delete_token_required');
  const found = await find(id);
  if (deleteToken !== undefined && isFile && !(found?.folderId && isToken(found.folderId))) throw fail('invalid_delete_token');
  if (!found) throw fail(absent);
  if (deleteToken === undefined && !mayDelete(caller, found)) throw fail('delete_token_required');
  return found;
}
