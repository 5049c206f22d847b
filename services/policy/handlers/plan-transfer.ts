/** POST /api/transfer-plan: fixes what a sender may store, and signs it. No transfer state is made. */
import { CompactSign } from 'jose';
import type { Caller, Handler, HandlerContext, InputOf, OutputOf } from '../../../shared/contract.ts';
import { planHeader, planType, type HeldRelease, type plans, type PlanClaims } from '../../../shared/contracts/plans.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import { keyedDigest, type PlanKey } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { chooseRoute, type Route } from '../domain/geometry.ts';
import type { PolicyDefaults } from '../domain/group.ts';
import { hashPasscode } from '../domain/passcode.ts';
import { resolveRelease } from '../domain/release.ts';
import { replayOr } from './replay.ts';

type Wanted = InputOf<typeof plans.planTransfer>;
type Plan = OutputOf<typeof plans.planTransfer>;

export const planTransfer = (deps: Deps): Handler<typeof plans.planTransfer> =>
  async function planTransfer(input, context) {
    const { limits, store, publish, clock, keys } = deps;
    checkMayCreate(deps, context.caller);
    const { passcode, ...asked } = input;
    const route = chooseRoute(input, limits.transfer);
    return replayOr(deps, {
      // What tells a repeated request is stored, and a passcode is not: its digest takes our key.
      contract: 'planTransfer', input: passcode === undefined ? asked : { ...asked, passcode: keyedDigest(passcode, keys.requestDigest) }, context,
      make: async (seal) => {
        const chosen = resolveRelease(input, limits.ttl, await defaultsOf(deps, input, context.caller));
        const release: HeldRelease = passcode === undefined ? chosen : { ...chosen, passcodeHash: await hashPasscode(passcode, keys.passcode) };
        const plan = await signPlan(deps, { input, context, release, route });
        const sealed = seal(plan);
        if (sealed) await store.recordAnswer(sealed);
        publish(eventOf(context, clock(), {
          eventType: 'policy.planned', targetType: 'policy', targetId: plan.planId,
          data: { lane: plan.lane, mode: chosen.mode, ...(input.size && { size: input.size }), ...(input.agentGroupId && { agentGroupId: input.agentGroupId }) },
        }));
        return plan;
      },
    });
  };

export const admitSender = (deps: Deps): Handler<typeof plans.admitSender> =>
  async function admitSender(_input, { caller }) {
    checkMayCreate(deps, caller);
    return { maxBytes: deps.limits.transfer.maxBytes };
  };

function checkMayCreate({ limits }: Deps, caller: Caller): void {
  if (caller.type === 'anonymous' && !limits.anonymousCreate) throw fail('agent_auth_required');
}

/** The defaults of the group that is named. A group is there for its owner and the owner's agents; to anybody else it does not exist. */
async function defaultsOf({ store }: Pick<Deps, 'store'>, { agentGroupId }: Wanted, caller: Caller): Promise<PolicyDefaults | undefined> {
  if (agentGroupId === undefined) return undefined;
  const defaults = caller.type === 'anonymous' ? undefined : await store.findPolicyDefaults(agentGroupId, caller.ownerId);
  if (!defaults) throw fail('group_not_found');
  return defaults;
}

async function signPlan({ keys, clock, limits, baseUrl }: Deps, plan: { input: Wanted; context: HandlerContext; release: HeldRelease; route: Route }): Promise<Plan> {
  const { input, context, release, route } = plan;
  const issuedAt = Math.floor(clock() / 1_000);
  const claims: PlanClaims = {
    planId: newId('plan'), transferId: newId('transfer'), shareId: newId('share'),
    creator: creatorOf(context.caller),
    lane: route.lane, fallback: route.fallback.map(({ lane }) => lane),
    filename: input.filename, mimeType: input.mimeType ?? 'application/octet-stream',
    ...(input.size !== undefined && { size: input.size }),
    ...(input.sha256 && { sha256: input.sha256 }),
    maxBytes: route.maxBytes, geometry: route.geometry, release,
    ...(input.agentGroupId && { agentGroupId: input.agentGroupId }),
    iss: baseUrl, iat: issuedAt, exp: issuedAt + limits.planTtl,
  };
  const signed = await sign(claims, keys.plan[0]!);
  const { passcodeHash, ...shown } = release;
  return {
    planId: claims.planId, plan: signed, lane: route.lane, geometry: route.geometry,
    capacity: { maxBytes: route.maxBytes, maxParts: limits.transfer.maxParts },
    release: { ...shown, ...(passcodeHash !== undefined && { passcodeRequired: true }) }, expiresAt: new Date(claims.exp * 1_000).toISOString(), fallback: route.fallback,
    upload: uploadOf(baseUrl, claims, signed),
  };
}

function creatorOf(caller: Caller): PlanClaims['creator'] {
  switch (caller.type) {
    case 'owner': return { ownerId: caller.ownerId, agentId: null };
    case 'agent': return { ownerId: caller.ownerId, agentId: caller.agentId };
    case 'anonymous': return { ownerId: null, agentId: null };
  }
}

async function sign(claims: PlanClaims, key: PlanKey): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'EdDSA', kid: key.kid, typ: planType })
    .sign(key.privateKey);
}

/** The first request of the planned lane. */
function uploadOf(baseUrl: string, claims: PlanClaims, signed: string): Plan['upload'] {
  if (claims.lane === 'single') {
    return { method: 'PUT', url: `${baseUrl}/api/lane/single/${claims.planId}`, headers: { [planHeader]: signed, 'Content-Type': 'application/octet-stream' } };
  }
  const path = claims.lane === 'pipe' ? '/api/pipe' : '/api/upload/multipart/init';
  return { method: 'POST', url: baseUrl + path, headers: { [planHeader]: signed, 'Content-Type': 'application/json' } };
}
