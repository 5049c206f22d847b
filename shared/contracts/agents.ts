/** Agents: their root keys and the access tokens minted from them (interface chapter: Authentication). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';

const keyRecord = z.strictObject({
  agentId: fields.agentId,
  keyId: fields.keyId,
  name: z.string().nullable(),
  createdAt: fields.dateTime,
  revokedAt: fields.dateTime.nullable(),
});

const credential = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('agent_key'), keyId: z.string().max(64), secretHash: z.string().max(64) }),
  z.strictObject({ kind: z.literal('owner_session'), sessionId: z.string().max(64), secretHash: z.string().max(64) }),
  z.strictObject({ kind: z.literal('access_token'), token: z.string().max(4_096) }),
]);

export const caller = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('anonymous') }),
  z.strictObject({ type: z.literal('owner'), ownerId: z.string(), sessionId: z.string() }),
  z.strictObject({ type: z.literal('agent'), agentId: z.string(), ownerId: z.string(), keyId: z.string() }),
]);

export const agents = defineContracts({
  identifyCaller: {
    service: 'policy',
    summary: 'Confirm whom a credential belongs to',
    accepts: [],
    input: z.strictObject({ credential }),
    output: z.strictObject({ caller }),
    errors: ['invalid_agent_credential', 'invalid_owner_credential'],
  },
  authenticateAgent: {
    service: 'policy',
    summary: 'Exchange an agent key for a short-lived access token',
    accepts: ['agent_key'],
    required: 'agent_auth_required',
    // The gateway also takes the key from {agentKey} in the body, so it reads this one itself.
    http: { method: 'POST', path: '/api/agent/auth', status: 200, body: 'empty', handled: true, rate: 'auth' },
    input: z.strictObject({}),
    output: z.strictObject({
      accessToken: z.string(),
      tokenType: z.literal('Bearer'),
      expiresAt: fields.dateTime,
      agentId: fields.agentId,
    }),
    errors: ['agent_auth_required', 'invalid_agent_credential'],
  },
  createAgentKey: {
    service: 'policy',
    summary: 'Make a key for an agent; its secret is shown this once',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: { method: 'POST', path: '/api/agent/keys', status: 201, body: 'empty' },
    idempotent: true,
    input: z.strictObject({ agentId: fields.agentId.optional(), name: fields.text(120).optional() }),
    output: z.strictObject({ agentId: fields.agentId, keyId: fields.keyId, key: z.string() }),
    errors: ['owner_auth_required', 'invalid_owner_credential', 'forbidden_origin', 'agent_id_taken', 'idempotency_key_reused'],
  },
  listAgentKeys: {
    service: 'policy',
    summary: 'List the keys of your agents, newest first',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: { method: 'GET', path: '/api/agent/keys', status: 200, query: ['limit', 'agentId'] },
    input: z.strictObject({ limit: z.int().min(1).max(200).default(200), agentId: fields.agentId.optional() }),
    output: z.strictObject({ count: z.int().min(0), keys: z.array(keyRecord) }),
    errors: ['owner_auth_required', 'invalid_owner_credential'],
  },
  revokeAgentKey: {
    service: 'policy',
    summary: 'Revoke a key; its access tokens end at once',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: { method: 'DELETE', path: '/api/agent/keys/{keyId}', status: 200 },
    input: z.strictObject({ keyId: fields.keyId }),
    output: z.strictObject({ key: keyRecord }),
    errors: ['owner_auth_required', 'invalid_owner_credential', 'forbidden_origin', 'key_not_found'],
  },
});
