/** What a plan allows: it may be narrowed by the request that uses it, never widened (interface chapter: Transfer plan and creation). */
import type { HeldRelease, PlanClaims, Release } from '../../../shared/contracts/plans.ts';
import { fail, type Failure } from '../../../shared/errors.ts';

/** What a request that uses a plan may say again. */
export interface Wish {
  readonly size?: number | undefined;
  readonly ttl?: number | undefined;
  readonly maxUses?: number | undefined;
  readonly authMode?: Release['mode'] | undefined;
  readonly allowedAgentIds?: readonly string[] | undefined;
  readonly policyMetadata?: Readonly<Record<string, string>> | undefined;
  readonly agentGroupId?: string | undefined;
  readonly filename?: string | undefined;
  readonly mimeType?: string | undefined;
  readonly partSize?: number | undefined;
  readonly sha256?: string | undefined;
}

const widened = (field: string, allowed: string | number): Failure => fail('plan_widened', { detail: `${field}: the plan allows ${allowed}`, errors: [{ path: field, message: `the plan allows ${allowed}` }] });
const mismatched = (field: string): Failure => fail('plan_mismatch', { detail: `${field}: differs from what was planned`, errors: [{ path: field, message: 'differs from what was planned' }] });

/** Checks that a plan is for this lane, or names it as a fallback. A pipe's is for nothing else, and nothing else's for a pipe. */
export function checkLane(claims: PlanClaims, lane: PlanClaims['lane']): void {
  if (claims.lane !== lane && !claims.fallback.some((other) => other === lane)) throw fail('plan_mismatch', { detail: `The plan is for the ${claims.lane} lane.` });
}

export function isExpired(claims: PlanClaims, now: number): boolean {
  return claims.exp * 1_000 <= now;
}

/** Promise: a plan begins a transfer until its `expiresAt`. */
export function checkUnexpired(claims: PlanClaims, now: number): void {
  if (isExpired(claims, now)) throw fail('plan_expired');
}

/**
 * The release of a transfer whose request narrows its plan.
 * @throws plan_widened or plan_mismatch that names the field, payload_too_large, digest_mismatch
 */
export function narrow(claims: PlanClaims, wish: Wish): HeldRelease {
  checkSize(claims, wish.size);
  checkSame(claims, wish);
  return narrowRelease(claims.release, wish);
}

/** How many bytes may come under a plan. */
export function bytesAllowed(claims: PlanClaims): number {
  return Math.min(claims.size ?? claims.maxBytes, claims.maxBytes);
}

function checkSize(claims: PlanClaims, size: number | undefined): void {
  if (size === undefined || size <= bytesAllowed(claims)) return;
  if (claims.size === undefined) throw fail('payload_too_large', { detail: `The plan allows ${claims.maxBytes} bytes.` });
  throw widened('size', bytesAllowed(claims));
}

/** What describes the file is not an access right: it has no narrower, only the same. */
function checkSame(claims: PlanClaims, wish: Wish): void {
  const { release } = claims;
  for (const field of ['filename', 'mimeType'] as const) {
    if (wish[field] !== undefined && wish[field] !== claims[field]) throw mismatched(field);
  }
  if (wish.partSize !== undefined && wish.partSize !== claims.geometry.partSize) throw mismatched('partSize');
  // A plan that was made without the group does not have its limits.
  if (wish.agentGroupId !== undefined && wish.agentGroupId !== claims.agentGroupId) throw mismatched('agentGroupId');
  // A template or group may have added labels to the sender's own.
  for (const [name, value] of Object.entries(wish.policyMetadata ?? {})) {
    if (!Object.hasOwn(release.metadata, name) || release.metadata[name] !== value) throw mismatched('policyMetadata');
  }
  if (wish.sha256 !== undefined && claims.sha256 !== undefined && wish.sha256 !== claims.sha256) throw fail('digest_mismatch', { detail: 'sha256: differs from what was planned' });
}

function narrowRelease(planned: HeldRelease, wish: Wish): HeldRelease {
  const { ttl = planned.ttl, maxUses = planned.maxUses, authMode = planned.mode, allowedAgentIds = planned.allowedAgentIds } = wish;
  if (ttl > planned.ttl) throw widened('ttl', planned.ttl);
  if (maxUses !== undefined && planned.maxUses !== undefined && maxUses > planned.maxUses) throw widened('maxUses', planned.maxUses);
  if (authMode !== planned.mode) throw authMode === 'open' ? widened('authMode', planned.mode) : mismatched('authMode');
  if (!allowedAgentIds.every((id) => planned.allowedAgentIds.includes(id))) throw widened('allowedAgentIds', 'only the agents it names');
  // An agent share without agents is of no use to anybody, and an empty list must never come to mean everybody.
  if (planned.mode === 'agent' && allowedAgentIds.length === 0) throw widened('allowedAgentIds', 'no empty list');
  return { ...planned, ttl, allowedAgentIds: [...allowedAgentIds], ...(maxUses !== undefined && { maxUses }) };
}
