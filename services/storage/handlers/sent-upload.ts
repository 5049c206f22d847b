/** The upload that a request is about, when its sender may go on with it. */
import type { Caller, HandlerContext } from '../../../shared/contract.ts';
import { fail } from '../../../shared/errors.ts';
import { isDeleteToken } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { checkSender, mayDelete } from '../domain/access.ts';
import type { Upload } from '../domain/upload.ts';
import { readPlan } from './read-plan.ts';

interface Request {
  readonly uploadId: string;
  readonly plan?: string | undefined;
  readonly deleteToken?: string | undefined;
}

/**
 * Promise: an upload begun with a plan goes on with that plan, which is the sender's proof; one into a folder by whoever may fill the folder;
 * any other by its sender.
 * @throws multipart_upload_not_found, plan_required, plan_mismatch, agent_auth_required, owner_auth_required, forbidden, delete_token_required, invalid_delete_token
 */
export async function sentUpload<U extends Upload>({ keys }: Pick<Deps, 'keys'>, found: U | undefined, { plan, deleteToken }: Request, { caller }: HandlerContext): Promise<U> {
  if (!found) throw fail('multipart_upload_not_found');
  if (found.planBound || plan) {
    const claims = await readPlan(keys.plan, plan);
    if (claims.planId !== found.planId) throw fail('plan_mismatch', { detail: 'The upload was begun with another plan.' });
  }
  if (found.folderId !== null) checkFolderSender({ keys }, found, deleteToken, caller);
  else if (!found.planBound) checkSender(caller, found);
  return found;
}

function checkFolderSender({ keys }: Pick<Deps, 'keys'>, { folderId, ...creator }: Upload, deleteToken: string | undefined, caller: Caller): void {
  if (deleteToken === undefined && !mayDelete(caller, creator)) throw fail('delete_token_required');
  if (deleteToken !== undefined && !isDeleteToken(deleteToken, folderId!, keys.deleteToken)) throw fail('invalid_delete_token');
}
