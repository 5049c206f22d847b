/** The upload that a request is about, when its sender may go on with it. */
import type { HandlerContext } from '../../../shared/contract.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { checkSender } from '../domain/access.ts';
import type { Upload } from '../domain/upload.ts';
import { readPlan } from './read-plan.ts';

interface Request {
  readonly uploadId: string;
  readonly plan?: string | undefined;
}

/**
 * Promise: an upload begun with a plan goes on with that plan, which is the sender's proof; any other by its sender.
 * @throws multipart_upload_not_found, plan_required, plan_mismatch, agent_auth_required, owner_auth_required, forbidden
 */
export async function sentUpload<U extends Upload>({ keys }: Pick<Deps, 'keys'>, found: U | undefined, { plan }: Request, { caller }: HandlerContext): Promise<U> {
  if (!found) throw fail('multipart_upload_not_found');
  if (found.planBound || plan) {
    const claims = await readPlan(keys.plan, plan);
    if (claims.planId !== found.planId) throw fail('plan_mismatch', { detail: 'The upload was begun with another plan.' });
  }
  if (!found.planBound) checkSender(caller, found);
  return found;
}
