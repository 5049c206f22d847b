/** Plans what another service fetches for the sender, to whom this plan is never shown. */
import type { Handler } from '../../../shared/contract.ts';
import type { plans } from '../../../shared/contracts/plans.ts';
import { keyedDigest } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { chooseRoute } from '../domain/geometry.ts';
import { replayOr } from './replay.ts';
import { checkMayCreate, recordPlan, signPlan, withoutPasscode } from './sign-plan.ts';

/** The name of a file until whoever fetches it knows a better one. */
const unnamed = 'download';

/** Seconds; longer than first answers are kept, so that an operation that failed may be sent again under its plan. */
const planTtl = 25 * 3_600;

export const planImport = (deps: Deps): Handler<typeof plans.planImport> =>
  async function planImport({ source, maxBytes, ...fields }, context) {
    checkMayCreate(deps, context.caller);
    const { transfer } = deps.limits;
    const route = chooseRoute({ lane: 'single' }, { ...transfer, maxBytes: Math.min(maxBytes, transfer.maxBytes) });
    const input = { ...fields, filename: fields.filename ?? unnamed };
    const described = (fields.filename === undefined || fields.mimeType === undefined) && { describedBySource: true as const };
    return replayOr(deps, {
      // A URL may hold secrets: even its digest is kept under our key only.
      contract: 'planImport', input: { ...withoutPasscode(deps, fields), source: keyedDigest(source, deps.keys.requestDigest) }, context,
      make: async (seal) => {
        const signed = await signPlan(deps, { input, context, route, ttl: planTtl, described });
        const { planId, transferId, shareId } = signed.claims;
        return recordPlan(deps, { plan: { planId, plan: signed.plan, transferId, shareId, maxBytes: route.maxBytes }, signed, sealed: seal, context });
      },
    });
  };
