/** Standing permissions by their owner: record, list, revoke. They decide nothing yet (interface chapter: Standing permissions). */
import type { Handler } from '../../../shared/contract.ts';
import type { permissions } from '../../../shared/contracts/permissions.ts';
import { fail, failField } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { ownerOf } from '../domain/owner.ts';
import { describePermission, expiryOf, type Permission } from '../domain/permission.ts';
import { replayOr } from './replay.ts';

export const createStandingPermission = (deps: Deps): Handler<typeof permissions.createStandingPermission> =>
  async function createStandingPermission(input, context) {
    const { store, clock } = deps;
    const ownerId = ownerOf(context.caller);
    const permission = await replayOr<Permission>(deps, {
      contract: 'createStandingPermission', input, context,
      read: (row) => row as Permission,
      make: async (_seal, operation) => {
        const { expiresAt: _asked, ...wanted } = input;
        const id = newId('permission');
        const expiresAt = expiryOf(input.expiresAt, clock());
        const event = eventOf(context, clock(), {
          eventType: 'standing_permission.created', targetType: 'standing_permission', targetId: id, agentId: input.fromAgentId,
          data: { toAgentId: input.toAgentId, scopes: input.scopes, ...(expiresAt && { expiresAt: expiresAt.toISOString() }) },
        });
        const audit = { createdBy: { type: 'owner' as const, id: ownerId }, createdByRequestId: context.requestId };
        const made = await store.createPermission({ ...wanted, id, ownerId, expiresAt, audit }, event, operation);
        if (!made) throw failField('fromAgentId', 'must be one of your agents');
        return made;
      },
    });
    // As it was when it was made: a repeated request has the first answer, also past the expiry.
    return { permission: describePermission(permission, Date.parse(permission.createdAt)) };
  };

export const listStandingPermissions = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof permissions.listStandingPermissions> =>
  async function listStandingPermissions({ limit }, { caller }) {
    const found = await store.listPermissions(ownerOf(caller), limit);
    return { count: found.length, permissions: found.map((permission) => describePermission(permission, clock())) };
  };

export const revokeStandingPermission = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof permissions.revokeStandingPermission> =>
  async function revokeStandingPermission({ permissionId }, context) {
    const ownerId = ownerOf(context.caller);
    const event = eventOf(context, clock(), { eventType: 'standing_permission.revoked', targetType: 'standing_permission', targetId: permissionId });
    await store.revokePermission(permissionId, ownerId, { revokedBy: { type: 'owner', id: ownerId }, revokedByRequestId: context.requestId }, event);
    const permission = await store.findPermission(permissionId, ownerId);
    // Another owner's permission is as good as none: that it exists is not ours to tell.
    if (!permission) throw fail('permission_not_found');
    return { permission: describePermission(permission, clock()) };
  };
