/** A standing permission and what its record says of it (interface chapter: Standing permission record). */
import type { z } from 'zod';
import type { standingPermission } from '../../../shared/contracts/permissions.ts';
import { failField } from '../../../shared/errors.ts';

export type PermissionRecord = z.output<typeof standingPermission>;

/** A permission as its row holds it: whether it has expired is a question of the time at which one asks. */
export type Permission = Omit<PermissionRecord, 'audit'> & { readonly audit: Omit<PermissionRecord['audit'], 'state' | 'enforcement'> };

/** The record at a time, in milliseconds since 1970. A revoked permission stays revoked past its expiry. */
export function describePermission(permission: Permission, now: number): PermissionRecord {
  const { expiresAt, revokedAt } = permission;
  const expired = expiresAt !== undefined && Date.parse(expiresAt) <= now;
  const state = revokedAt !== undefined ? 'revoked' : expired ? 'expired' : 'active';
  return { ...permission, audit: { state, enforcement: 'deferred', ...permission.audit } };
}

/** The last instant that a date-time of four-digit years can name in UTC. */
const endOfTime = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * When a new permission expires.
 * @throws invalid_request for a time that is not in the future
 */
export function expiryOf(expiresAt: string | undefined, now: number): Date | null {
  if (expiresAt === undefined) return null;
  const time = Date.parse(expiresAt);
  if (!(time > now)) throw failField('expiresAt', 'must be in the future');
  if (time > endOfTime) throw failField('expiresAt', 'must be before the year 10000 in UTC');
  return new Date(time);
}
