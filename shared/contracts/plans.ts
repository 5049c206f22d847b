/** Transfer plans: what a sender may store, signed before any transfer state exists (interface chapter: Transfer plan and creation). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';

export const lanes = ['single', 'multipart', 'direct'] as const;
const lane = z.enum(lanes);
/** What a plan may be for: a lane to a file, or a pipe. */
const plannedLane = z.enum([...lanes, 'pipe']);

/** The access policy that the share will have, fixed by the plan. */
export const release = z.strictObject({
  mode: fields.mode,
  allowedAgentIds: z.array(fields.agentId).max(100),
  maxUses: fields.maxUses.optional(),
  ttl: fields.ttl.describe('Seconds from completion to expiry'),
  metadata: fields.metadata,
});
export type Release = z.output<typeof release>;

/** A release as the services hold it: with what a passcode is checked against. */
export const heldRelease = release.extend({ passcodeHash: fields.passcodeHash.optional() });
export type HeldRelease = z.output<typeof heldRelease>;

export const geometry = z.strictObject({
  partSize: z.int().describe('Bytes of every part but the last'),
  partCount: z.int().optional().describe('Absent when the size was not given'),
  maxParallelParts: z.int(),
});

/** What the signature of a plan covers. Storage trusts these and nothing the client says beside them. */
export const planClaims = z.strictObject({
  planId: fields.planId,
  transferId: fields.transferId,
  shareId: fields.shareId,
  creator: fields.creator,
  lane: plannedLane,
  fallback: z.array(lane),
  filename: fields.filename,
  mimeType: fields.mimeType,
  size: fields.size.optional(),
  sha256: fields.sha256.optional(),
  maxBytes: z.int(),
  geometry,
  release: heldRelease,
  /** The group whose defaults were filled in, so that the lane can tell the same request from another. */
  agentGroupId: fields.agentGroupId.optional(),
  iss: z.string(),
  iat: z.int(),
  exp: z.int(),
});
export type PlanClaims = z.output<typeof planClaims>;

/** The name under which a plan is sent to its lane. */
export const planHeader = 'X-Transfer-Plan';

/** The type in a plan's protected header: another kind of message signed by the same key is not a plan. */
export const planType = 'transfer-plan+jwt';

/** What multipart init and the plan have in common. */
export const transferFields = {
  filename: fields.filename,
  mimeType: fields.mimeType.optional(),
  ...fields.policyFields,
};

export const plans = defineContracts({
  planTransfer: {
    service: 'policy',
    summary: 'Request a signed transfer plan before any transfer state is created',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'POST', path: '/api/transfer-plan', status: 201 },
    idempotent: true,
    input: z.strictObject({
      ...transferFields,
      size: fields.size.optional().describe('Bytes; may be absent for a stream'),
      sha256: fields.sha256.optional().describe('Digest that the bytes must have'),
      lane: lane.optional(),
      partSize: z.int().min(1).optional(),
      release: z.enum(['complete', 'live']).optional().describe('When the bytes may be fetched: once they are complete, or while they come, from a pipe'),
    }),
    output: z.strictObject({
      planId: fields.planId,
      plan: z.string().describe('The signed plan, a compact JWS'),
      lane: plannedLane,
      geometry,
      capacity: z.strictObject({ maxBytes: z.int(), maxParts: z.int() }),
      release: release.extend({ passcodeRequired: fields.passcodeRequired }),
      expiresAt: fields.dateTime,
      fallback: z.array(z.strictObject({ lane, when: z.string() })),
      upload: z.strictObject({ method: z.string(), url: z.string(), headers: z.record(z.string(), z.string()) }),
    }),
    errors: ['payload_too_large', 'group_not_found', 'idempotency_key_reused', 'agent_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin'],
  },
  admitSender: {
    service: 'policy',
    summary: 'Say whether a caller may create transfers, and of how many bytes: for a way in whose plan is made after its bytes have come',
    accepts: ['owner_session', 'agent_key'],
    input: z.strictObject({}),
    output: z.strictObject({ maxBytes: z.int() }),
    errors: ['agent_auth_required', 'invalid_agent_credential', 'invalid_owner_credential'],
  },
  hashPasscode: {
    service: 'policy',
    summary: 'Hash the passcode of a request that has a plan; one that was planned must be the same',
    accepts: [],
    input: z.strictObject({ passcode: fields.passcode, planned: fields.passcodeHash.optional() }),
    output: z.strictObject({ passcodeHash: fields.passcodeHash }),
    errors: ['plan_mismatch'],
  },
  readJwks: {
    service: 'policy',
    summary: 'The public keys that plans are signed with',
    accepts: [],
    http: { method: 'GET', path: '/.well-known/jwks.json', status: 200 },
    input: z.strictObject({}),
    output: z.strictObject({
      keys: z.array(z.strictObject({ kty: z.string(), crv: z.string(), x: z.string(), kid: z.string(), alg: z.string(), use: z.string() })),
    }),
    errors: [],
  },
});
