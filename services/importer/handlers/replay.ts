/** The answer of a plan whose transfer exists; nothing is fetched for it. */
import type { RequestContext } from '../../../shared/contract.ts';
import { uploads } from '../../../shared/contracts/uploads.ts';
import { ownContext } from '../../../shared/rpc.ts';
import type { Deps } from '../deps.ts';

/** @throws transfer_not_found */
export function replay({ bus }: Pick<Deps, 'bus'>, { planId, plan }: { planId: string; plan: string }, context: RequestContext) {
  return bus.call(uploads.replaySingle, { planId, plan }, ownContext(context));
}
