/** POST /api/transfer-plan: fixes what a sender may store, and signs it. No transfer state is made. */
import type { Handler, OutputOf } from '../../../shared/contract.ts';
import { planHeader, type plans, type PlanClaims } from '../../../shared/contracts/plans.ts';
import type { Deps } from '../deps.ts';
import { chooseRoute, type Route } from '../domain/geometry.ts';
import { replayOr } from './replay.ts';
import { checkMayCreate, recordPlan, signPlan, withoutPasscode, type SignedPlan } from './sign-plan.ts';

type Plan = OutputOf<typeof plans.planTransfer>;

export const planTransfer = (deps: Deps): Handler<typeof plans.planTransfer> =>
  async function planTransfer(input, context) {
    const { limits } = deps;
    checkMayCreate(deps, context.caller);
    const route = chooseRoute(input, limits.transfer);
    return replayOr(deps, {
      contract: 'planTransfer', input: withoutPasscode(deps, input), context,
      make: async (seal) => {
        const signed = await signPlan(deps, { input, context, route, ttl: limits.planTtl });
        return recordPlan(deps, { plan: planOf(deps, signed, route), signed, sealed: seal, context });
      },
    });
  };

/** What the sender is told of a plan. */
function planOf({ limits, baseUrl }: Deps, { claims, plan }: SignedPlan, route: Route): Plan {
  const { passcodeHash, ...shown } = claims.release;
  return {
    planId: claims.planId, plan, lane: route.lane, geometry: route.geometry,
    capacity: { maxBytes: route.maxBytes, maxParts: limits.transfer.maxParts },
    release: { ...shown, ...(passcodeHash !== undefined && { passcodeRequired: true }) }, expiresAt: new Date(claims.exp * 1_000).toISOString(), fallback: route.fallback,
    upload: uploadOf(baseUrl, claims, plan),
  };
}

/** The first request of the planned lane. */
function uploadOf(baseUrl: string, claims: PlanClaims, signed: string): Plan['upload'] {
  if (claims.lane === 'single') {
    return { method: 'PUT', url: `${baseUrl}/api/lane/single/${claims.planId}`, headers: { [planHeader]: signed, 'Content-Type': 'application/octet-stream' } };
  }
  const path = claims.lane === 'pipe' ? '/api/pipe' : '/api/upload/multipart/init';
  return { method: 'POST', url: baseUrl + path, headers: { [planHeader]: signed, 'Content-Type': 'application/json' } };
}
