/** Answers once more for a plan that made its transfer by the single lane, without its bytes. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { releaseTransfer } from './release-transfer.ts';
import { enterSingleLane } from './single-lane.ts';

export const replaySingle = (deps: Deps): Handler<typeof uploads.replaySingle> =>
  async function replaySingle(input, context) {
    const { claims } = await enterSingleLane(deps, { ...input, narrowing: {} }, undefined);
    const transfer = await deps.store.findTransferOfPlan(claims.planId);
    if (!transfer) throw fail('transfer_not_found');
    return releaseTransfer(deps, transfer, context);
  };
