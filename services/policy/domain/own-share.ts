/** A share as its owner has it: what of its policy may change, and to what. */
import type { Caller } from '../../../shared/contract.ts';
import { fail, failField } from '../../../shared/errors.ts';
import type { shareStates } from '../../../shared/contracts/shares.ts';
import type { Share } from './share.ts';

export type ShareState = (typeof shareStates)[number];

/** A share with what only its owner sees of it. */
export interface OwnShare extends Share {
  readonly state: ShareState;
  readonly createdAt: Date;
  /** Until when the bytes behind it are kept. */
  readonly targetExpiresAt: Date;
}

/** Whose shares: all of an owner, or of those the ones that an agent created. */
export interface Whose {
  readonly ownerId: string;
  readonly agentId?: string;
}

/** @throws owner_auth_required */
export function sharesOf(caller: Caller): Whose {
  switch (caller.type) {
    case 'owner': return { ownerId: caller.ownerId };
    case 'agent': return { ownerId: caller.ownerId, agentId: caller.agentId };
    case 'anonymous': throw fail('owner_auth_required');
  }
}

/** What a request changes. An absent field stays as it is; `maxUses: null` removes the cap. */
export interface Changes {
  readonly expiresAt?: Date | undefined;
  readonly maxUses?: number | null | undefined;
  readonly allowedAgentIds?: readonly string[] | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

interface Bounds {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Seconds that a share may live from now at most. */
  readonly maxTtl: number;
}

/**
 * Checks that a share may have this policy.
 * @throws invalid_request that names the field
 */
export function checkChanges(share: OwnShare, { expiresAt, maxUses, allowedAgentIds }: Changes, { now, maxTtl }: Bounds): void {
  if (expiresAt && !(expiresAt.getTime() > now)) throw failField('expiresAt', 'must be in the future');
  // What it has already it may keep, should the deployment's bound have become smaller.
  if (expiresAt && expiresAt > share.expiresAt && expiresAt.getTime() > now + maxTtl * 1_000) throw failField('expiresAt', `must be at most ${maxTtl} seconds from now`);
  if (expiresAt && needsBytesUntil(share, { expiresAt }) && share.targetType === 'pipe') throw failField('expiresAt', `must not be after ${share.targetExpiresAt.toISOString()}: what the share holds is kept until then`);
  if (typeof maxUses === 'number' && maxUses < share.uses) throw failField('maxUses', `must be at least ${share.uses}: so many uses are spent`);
  if (allowedAgentIds && share.mode === 'open') throw failField('allowedAgentIds', 'an open share has no allow list');
  if (allowedAgentIds?.length === 0) throw failField('allowedAgentIds', 'must name at least one agent for an agent share');
}

/** The time until which the bytes must be kept for a change, when they are not kept that long yet. */
export function needsBytesUntil(share: OwnShare, { expiresAt }: Changes): Date | undefined {
  return expiresAt && expiresAt > share.targetExpiresAt ? expiresAt : undefined;
}

/** The names of the fields whose value would become another. */
export function changedFields(share: OwnShare, { expiresAt, maxUses, allowedAgentIds, metadata }: Changes): string[] {
  const changed: Record<keyof Changes, boolean> = {
    expiresAt: expiresAt !== undefined && expiresAt.getTime() !== share.expiresAt.getTime(),
    maxUses: maxUses !== undefined && maxUses !== share.maxUses,
    allowedAgentIds: allowedAgentIds !== undefined && !sameList(allowedAgentIds, share.allowedAgentIds),
    metadata: metadata !== undefined && !sameLabels(metadata, share.metadata),
  };
  return Object.entries(changed).flatMap(([field, is]) => (is ? [field] : []));
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}

function sameLabels(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  return Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([name, value]) => Object.hasOwn(b, name) && b[name] === value);
}
