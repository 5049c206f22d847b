/** A creation that a plan decides: the client's own plan, or one that is asked for here with the same bounds. */
import type { HandlerContext, InputOf } from '../../../shared/contract.ts';
import { plans, type PlanClaims } from '../../../shared/contracts/plans.ts';
import { failField } from '../../../shared/errors.ts';
import { operationScope, requestDigest } from '../../../shared/operation.ts';
import { keyedDigest } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { checkUnexpired } from '../domain/narrowing.ts';
import { claimOperation } from './claim-operation.ts';
import { readPlan } from './read-plan.ts';
import { ownContext } from './release-transfer.ts';

/** What every such request may have. */
interface Input {
  readonly plan?: string | undefined;
  readonly passcode?: string | undefined;
  readonly policyTemplateId?: unknown;
}

/** What says whether a request was made before. */
export interface CreationRequest {
  readonly operationHash: string | null;
  readonly digest: string;
  /** The client's own plan. */
  readonly own: PlanClaims | undefined;
}

/**
 * Reads a request's plan, and takes its operation id for it.
 * @throws plan_mismatch for a plan that was not signed here, idempotency_key_reused
 */
export async function readCreation(deps: Pick<Deps, 'keys' | 'store'>, contract: string, { plan, passcode, ...asked }: Input, { caller, address, operationId }: HandlerContext): Promise<CreationRequest> {
  const { keys } = deps;
  const own = plan ? await readPlan(keys.plan, plan) : undefined;
  // The digest is stored, and a passcode is not: its own digest takes our key.
  const digest = requestDigest(contract, { ...asked, planId: own?.planId, ...(passcode !== undefined && { passcode: keyedDigest(passcode, keys.requestDigest) }) });
  const operationHash = operationId === undefined ? null : operationScope(caller, address, operationId);
  if (operationHash) await claimOperation(deps, { scope: operationHash, requestDigest: digest });
  return { operationHash, digest, own };
}

/**
 * The plan of a request: its own, with a passcode as one more condition, or a new one.
 * @param wanted what to ask a plan for when the request has none
 */
export async function claimsOf(deps: Pick<Deps, 'bus' | 'keys' | 'clock'>, own: PlanClaims | undefined, input: Input, request: { wanted: InputOf<typeof plans.planTransfer>; context: HandlerContext }): Promise<PlanClaims> {
  if (!own) return planFor(deps, request.wanted, request.context);
  checkUnexpired(own, deps.clock());
  // What a plan leaves to say: a template in place of explicit fields would be neither narrower nor wider.
  if (input.policyTemplateId) throw failField('policyTemplateId', 'the plan fixed the policy; narrow it by explicit fields');
  return input.passcode === undefined ? own : withPasscode(deps, own, input.passcode, request.context);
}

async function planFor({ bus, keys }: Pick<Deps, 'bus' | 'keys'>, wanted: InputOf<typeof plans.planTransfer>, context: HandlerContext): Promise<PlanClaims> {
  const credential = context.credential && { credential: context.credential };
  const { plan } = await bus.call(plans.planTransfer, wanted, { ...ownContext(context), ...credential });
  return readPlan(keys.plan, plan);
}

/** The planned passcode again, or one more condition. */
async function withPasscode({ bus }: Pick<Deps, 'bus'>, claims: PlanClaims, passcode: string, context: HandlerContext): Promise<PlanClaims> {
  const { passcodeHash } = await bus.call(plans.hashPasscode, { passcode, planned: claims.release.passcodeHash }, ownContext(context));
  return { ...claims, release: { ...claims.release, passcodeHash } };
}
