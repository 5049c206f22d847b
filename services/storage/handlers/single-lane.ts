/** What the requests of the single lane have in common: its plan, its transfer, its replay. */
import type { z } from 'zod';
import type { HeldRelease, PlanClaims } from '../../../shared/contracts/plans.ts';
import type { Described, narrowing } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { checkLane, isExpired, nameAsDescribed, narrow } from '../domain/narrowing.ts';
import { hasContent, type Content, type NewTransfer, type Transfer } from '../domain/transfer.ts';
import { readPlan } from './read-plan.ts';

interface SingleRequest {
  readonly planId: string;
  readonly plan: string;
  readonly narrowing: z.output<typeof narrowing>;
  readonly described?: Described | undefined;
}

export interface SingleLane {
  readonly claims: PlanClaims;
  readonly release: HeldRelease;
}

/** Reads the plan of a single-lane request and checks that it is for this address, this lane and so many bytes. */
export async function enterSingleLane({ keys }: Pick<Deps, 'keys'>, request: SingleRequest, size: number | undefined): Promise<SingleLane> {
  const claims = await readPlan(keys.plan, request.plan);
  if (claims.planId !== request.planId) throw fail('plan_mismatch', { detail: 'The plan has another id than the address.' });
  checkLane(claims, 'single');
  return { claims: nameAsDescribed(claims, request.described), release: narrow(claims, { ...request.narrowing, size }) };
}

/**
 * Promise: a plan begins a transfer until its expiry, and the one that it made is answered again after that.
 * @throws plan_expired
 */
export async function checkTimely({ store, clock }: Pick<Deps, 'store' | 'clock'>, claims: PlanClaims): Promise<void> {
  const now = clock();
  if (isExpired(claims, now) && !(await store.findTransferOfPlan(claims.planId))) throw fail('plan_expired');
}

/** Promise: bytes that do not have the digest they were promised with are not stored. */
export function checkDigest(actual: string | undefined, ...promised: (string | undefined)[]): void {
  if (promised.some((digest) => digest !== undefined && digest !== actual)) throw fail('digest_mismatch');
}

export function transferOf({ claims, release }: SingleLane, { size, crc32, sha256 }: Content): NewTransfer {
  const { transferId: id, shareId, planId, creator, filename, mimeType } = claims;
  return { id, shareId, planId, ...creator, kind: 'file', lane: 'single', filename, mimeType, size, crc32, sha256: sha256 ?? null, release };
}

/** The transfer that a plan made before, when it has the same bytes. */
export function sameTransfer(existing: Transfer | undefined, content: Content): Transfer {
  if (!existing || !hasContent(existing, content)) throw fail('plan_already_used');
  return existing;
}
