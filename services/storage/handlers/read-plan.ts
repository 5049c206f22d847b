/** Reads a plan that a client presents: only what the policy service signed counts. */
import { compactVerify } from 'jose';
import { planClaims, planType, type PlanClaims } from '../../../shared/contracts/plans.ts';
import { fail } from '../../../shared/errors.ts';
import type { PlanKey } from '../../../shared/tokens.ts';

/**
 * The claims of a plan. Its expiry is for the caller to check: it binds the begin of a transfer only.
 * @throws plan_required when there is none, plan_mismatch when it is not one of ours
 */
export async function readPlan(keys: readonly PlanKey[], plan: string | undefined): Promise<PlanClaims> {
  if (!plan) throw fail('plan_required');
  const { payload, protectedHeader } = await compactVerify(plan, ({ kid }) => publicKeyOf(keys, kid), { algorithms: ['EdDSA'] })
    .catch((error: unknown) => { throw fail('plan_mismatch', { detail: 'The plan is not one that was signed here.' }, error); });
  if (protectedHeader.typ !== planType) throw fail('plan_mismatch', { detail: 'The token is not a plan.' });
  return planClaims.parse(JSON.parse(Buffer.from(payload).toString('utf8')));
}

function publicKeyOf(keys: readonly PlanKey[], kid: string | undefined) {
  const key = keys.find((candidate) => candidate.kid === kid);
  if (!key) throw new Error('unknown key');
  return key.publicKey;
}
