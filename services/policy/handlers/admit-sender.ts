/** Whether a caller may create transfers at all, for a way in whose plan is made after its bytes have come. */
import type { Handler } from '../../../shared/contract.ts';
import type { plans } from '../../../shared/contracts/plans.ts';
import type { Deps } from '../deps.ts';
import { checkMayCreate } from './sign-plan.ts';

export const admitSender = (deps: Pick<Deps, 'limits'>): Handler<typeof plans.admitSender> =>
  async function admitSender(_input, { caller }) {
    checkMayCreate(deps, caller);
    return { maxBytes: deps.limits.transfer.maxBytes };
  };
