/** What every plan has in common: who may ask, what it fixes, its signature and its record. */
import { CompactSign } from 'jose';
import { creatorOf, type Caller, type HandlerContext, type InputOf } from '../../../shared/contract.ts';
import { planType, type HeldRelease, type plans, type PlanClaims } from '../../../shared/contracts/plans.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import { keyedDigest, type PlanKey } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import type { Route } from '../domain/geometry.ts';
import type { PolicyDefaults } from '../domain/group.ts';
import { hashPasscode } from '../domain/passcode.ts';
import { resolveRelease } from '../domain/release.ts';
import type { SealedAnswer } from '../store/answers.ts';

type Wanted = InputOf<typeof plans.planTransfer>;

export function checkMayCreate({ limits }: Pick<Deps, 'limits'>, caller: Caller): void {
  if (caller.type === 'anonymous' && !limits.anonymousCreate) throw fail('agent_auth_required');
}

/** What tells a repeated request is stored, and a passcode is not: its digest takes our key. */
export function withoutPasscode<I extends { passcode?: string | undefined }>({ keys }: Pick<Deps, 'keys'>, input: I): object {
  const { passcode, ...asked } = input;
  return passcode === undefined ? asked : { ...asked, passcode: keyedDigest(passcode, keys.requestDigest) };
}

/** Records the answer of a plan where its request may be repeated, and tells that it was signed. */
export async function recordPlan<P>({ store, publish, clock }: Deps, made: { plan: P; signed: SignedPlan; sealed: (plan: P) => SealedAnswer | undefined; context: HandlerContext }): Promise<P> {
  const { plan, signed: { claims }, context } = made;
  const sealed = made.sealed(plan);
  if (sealed) await store.recordAnswer(sealed);
  publish(eventOf(context, clock(), {
    eventType: 'policy.planned', targetType: 'policy', targetId: claims.planId,
    data: { lane: claims.lane, mode: claims.release.mode, ...(claims.size && { size: claims.size }), ...(claims.agentGroupId && { agentGroupId: claims.agentGroupId }) },
  }));
  return plan;
}

/** The defaults of the group that is named. A group is there for its owner and the owner's agents; to anybody else it does not exist. */
async function defaultsOf({ store }: Pick<Deps, 'store'>, { agentGroupId }: Pick<Wanted, 'agentGroupId'>, caller: Caller): Promise<PolicyDefaults | undefined> {
  if (agentGroupId === undefined) return undefined;
  const defaults = caller.type === 'anonymous' ? undefined : await store.findPolicyDefaults(agentGroupId, caller.ownerId);
  if (!defaults) throw fail('group_not_found');
  return defaults;
}

async function releaseOf(deps: Deps, input: Wanted, caller: Caller): Promise<HeldRelease> {
  const chosen = resolveRelease(input, deps.limits.ttl, await defaultsOf(deps, input, caller));
  return input.passcode === undefined ? chosen : { ...chosen, passcodeHash: await hashPasscode(input.passcode, deps.keys.passcode) };
}

export interface SignedPlan {
  readonly claims: PlanClaims;
  readonly plan: string;
}

interface ToSign {
  readonly input: Wanted;
  readonly context: HandlerContext;
  readonly route: Route;
  /** Seconds. */
  readonly ttl: number;
  readonly described?: Pick<PlanClaims, 'describedBySource'> | false;
}

export async function signPlan(deps: Deps, { input, context, route, ttl, described }: ToSign): Promise<SignedPlan> {
  const { keys, clock, baseUrl } = deps;
  const release = await releaseOf(deps, input, context.caller);
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
    ...described,
    iss: baseUrl, iat: issuedAt, exp: issuedAt + ttl,
  };
  return { claims, plan: await sign(claims, keys.plan[0]!) };
}

async function sign(claims: PlanClaims, key: PlanKey): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'EdDSA', kid: key.kid, typ: planType })
    .sign(key.privateKey);
}
