/** Agent groups: an owner's named lists of agents with policy defaults (interface chapters: Agent group record, Agent groups). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';

/** The most members a group has. */
export const memberLimit = 100;

const role = z.enum(['member', 'manager']);
const name = fields.text(120);
const maxTtlSeconds = z.int().min(1).max(604_800);

/** What a share that names the group gets where its request says nothing. Never widens a share that exists. */
const policyDefaults = z.strictObject({
  mode: z.literal('agent'),
  allowedAgentIds: fields.allowedAgentIds,
  maxTtlSeconds: maxTtlSeconds.optional(),
  maxUses: fields.maxUses.optional(),
  metadata: fields.metadata.optional(),
});

type Member = { agentId: string; role: z.output<typeof role> };

/** Refuses an agent that is named with two roles: one of them would be lost. */
function refuseContradictions(members: readonly Member[], context: z.RefinementCtx): void {
  members.forEach((member, index) => {
    const first = members.find(({ agentId }) => agentId === member.agentId)!;
    if (first.role !== member.role) context.addIssue({ code: 'custom', path: [index], message: `names ${member.agentId} a second time with another role` });
  });
}

/** Each agent once; an id alone is a plain member. */
const members = z
  .array(z.union([fields.agentId, z.strictObject({ agentId: fields.agentId, role: role.default('member') })], 'must be an agent id or {agentId, role}'))
  .max(memberLimit)
  .transform((given): Member[] => given.map((one) => (typeof one === 'string' ? { agentId: one, role: 'member' } : one)))
  .superRefine(refuseContradictions)
  .transform((given) => given.filter(({ agentId }, index) => given.findIndex((other) => other.agentId === agentId) === index));

export const agentGroup = z.strictObject({
  id: fields.agentGroupId,
  ownerId: z.string(),
  name: z.string(),
  members: z.array(z.strictObject({
    agentId: fields.agentId,
    role,
    addedAt: fields.dateTime,
    addedByAgentId: z.string().nullable(),
  })),
  policyDefaults: policyDefaults.extend({ allowedAgentIds: z.array(fields.agentId).max(100) }),
  createdAt: fields.dateTime,
  updatedAt: fields.dateTime,
  createdByAgentId: z.string().nullable(),
  version: z.int().min(1).describe('Grows by one with each change'),
});

const answer = z.strictObject({ group: agentGroup });

const byOwner = { service: 'policy', accepts: ['owner_session'], required: 'owner_auth_required' } as const;
const ownerErrors = ['owner_auth_required', 'invalid_owner_credential', 'forbidden_origin'] as const;
const oneGroup = {
  groupId: fields.agentGroupId,
  ifMatch: z.string().max(1_024).optional().describe('The version that is to be changed, such as "3"; * for any'),
};
const headers = { ifMatch: 'If-Match' };

export const groups = defineContracts({
  createAgentGroup: {
    ...byOwner,
    summary: 'Make an agent group',
    http: { method: 'POST', path: '/api/agent/groups', status: 201 },
    idempotent: true,
    input: z.strictObject({
      name,
      members: members.default([]),
      policyDefaults: policyDefaults.default({ mode: 'agent', allowedAgentIds: [] }),
    }),
    output: answer,
    errors: [...ownerErrors, 'idempotency_key_reused'],
  },
  listAgentGroups: {
    ...byOwner,
    summary: 'List your agent groups, newest first',
    http: { method: 'GET', path: '/api/agent/groups', status: 200, query: ['limit'] },
    input: z.strictObject({ limit: z.int().min(1).max(200).default(200) }),
    output: z.strictObject({ count: z.int().min(0), groups: z.array(agentGroup) }),
    errors: ['owner_auth_required', 'invalid_owner_credential'],
  },
  updateAgentGroup: {
    ...byOwner,
    summary: 'Change the name or the policy defaults of a group; policyDefaults replaces them as a whole',
    http: { method: 'PATCH', path: '/api/agent/groups/{groupId}', status: 200, headers },
    input: z.strictObject({ ...oneGroup, name: name.optional(), policyDefaults: policyDefaults.optional() })
      .refine((wish) => wish.name !== undefined || wish.policyDefaults !== undefined, { path: ['body'], message: 'must have name or policyDefaults' }),
    output: answer,
    errors: [...ownerErrors, 'group_not_found', 'precondition_failed'],
  },
  deleteAgentGroup: {
    ...byOwner,
    summary: 'Delete a group; answers its last state. Shares that were made with it stay as they are',
    http: { method: 'DELETE', path: '/api/agent/groups/{groupId}', status: 200, headers },
    input: z.strictObject(oneGroup),
    output: answer,
    errors: [...ownerErrors, 'group_not_found', 'precondition_failed'],
  },
  addGroupMember: {
    ...byOwner,
    summary: 'Add an agent to a group; does not widen policyDefaults.allowedAgentIds',
    http: { method: 'POST', path: '/api/agent/groups/{groupId}/members', status: 201, headers },
    idempotent: true,
    input: z.strictObject({ ...oneGroup, agentId: fields.agentId, role: role.default('member') }),
    output: answer,
    errors: [...ownerErrors, 'group_not_found', 'agent_already_member', 'group_full', 'precondition_failed', 'idempotency_key_reused'],
  },
  removeGroupMember: {
    ...byOwner,
    summary: 'Remove an agent from a group and from policyDefaults.allowedAgentIds',
    http: { method: 'DELETE', path: '/api/agent/groups/{groupId}/members/{agentId}', status: 200, headers },
    input: z.strictObject({ ...oneGroup, agentId: fields.agentId }),
    output: answer,
    errors: [...ownerErrors, 'group_not_found', 'member_not_found', 'precondition_failed'],
  },
});
