/** Standing permissions: what one agent may do for another, recorded for a later enforcement (interface chapter: Standing permission record). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';

const once = <T>(list: T[]): T[] => [...new Set(list)];

const scopes = z.array(z.enum(['share.resolve', 'grant.issue'])).min(1);
const policyMode = z.enum(['agent']);
/** A media type, or a range of them such as `image/*`. */
const contentType = z.union([fields.mimeType, z.string().max(255).regex(/^(\*|[\w!#$&^.+-]+)\/\*$/)], 'must be a media type such as application/json or image/*');

/** A list that is absent limits nothing; one that is empty allows nothing. */
const constraints = z.strictObject({
  allowedPolicyModes: z.array(policyMode).transform(once),
  targetTypes: z.array(fields.targetType).transform(once).optional(),
  contentTypes: z.array(contentType).max(25).transform(once).optional(),
  maxShareTtlSeconds: z.int().min(1).max(604_800).optional(),
  maxGrantTtlSeconds: z.int().min(1).max(300).optional(),
  policyMetadata: fields.metadata.optional(),
});

const party = z.strictObject({ type: z.literal('agent'), agentId: fields.agentId });

export const standingPermission = z.strictObject({
  id: fields.permissionId,
  ownerId: z.string(),
  from: party,
  to: party,
  scopes,
  constraints: constraints.extend({
    allowedPolicyModes: z.array(policyMode),
    targetTypes: z.array(fields.targetType).optional(),
    contentTypes: z.array(z.string()).max(25).optional(),
  }),
  createdAt: fields.dateTime,
  updatedAt: fields.dateTime,
  expiresAt: fields.dateTime.optional(),
  revokedAt: fields.dateTime.optional(),
  audit: z.strictObject({
    state: z.enum(['active', 'expired', 'revoked']),
    enforcement: z.literal('deferred').describe('Recorded only: no resolve or grant asks for it yet'),
    createdBy: z.strictObject({ type: z.literal('owner'), id: z.string() }),
    createdByRequestId: z.string(),
    revokedBy: z.strictObject({ type: z.literal('owner'), id: z.string() }).optional(),
    revokedByRequestId: z.string().optional(),
  }),
  version: z.int().min(1).describe('2 once it is revoked'),
});

const answer = z.strictObject({ permission: standingPermission });

const byOwner = { service: 'policy', accepts: ['owner_session'], required: 'owner_auth_required' } as const;
const ownerErrors = ['owner_auth_required', 'invalid_owner_credential', 'forbidden_origin'] as const;

export const permissions = defineContracts({
  createStandingPermission: {
    ...byOwner,
    summary: 'Record a standing permission from one of your agents to another agent; it changes no resolve or grant yet',
    http: { method: 'POST', path: '/api/agent/permissions', status: 201 },
    idempotent: true,
    input: z.strictObject({
      fromAgentId: fields.agentId.describe('One of your agents'),
      toAgentId: fields.agentId,
      scopes: scopes.transform(once),
      constraints: constraints.default({ allowedPolicyModes: ['agent'] }),
      expiresAt: fields.dateTime.optional().describe('In the future; without it the permission stands until it is revoked'),
    }),
    output: answer,
    errors: [...ownerErrors, 'idempotency_key_reused'],
  },
  listStandingPermissions: {
    ...byOwner,
    summary: 'List your standing permissions, newest first, with those that expired or were revoked',
    http: { method: 'GET', path: '/api/agent/permissions', status: 200, query: ['limit'] },
    input: z.strictObject({ limit: z.int().min(1).max(200).default(200) }),
    output: z.strictObject({ count: z.int().min(0), permissions: z.array(standingPermission) }),
    errors: ['owner_auth_required', 'invalid_owner_credential'],
  },
  revokeStandingPermission: {
    ...byOwner,
    summary: 'Revoke a standing permission; again gives the same answer',
    http: { method: 'DELETE', path: '/api/agent/permissions/{permissionId}', status: 200 },
    input: z.strictObject({ permissionId: fields.permissionId }),
    output: answer,
    errors: [...ownerErrors, 'permission_not_found'],
  },
});
