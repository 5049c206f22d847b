/** Shares: a transfer under an access policy, and the uses that fetches spend (interface chapters: Share resolve response, Policy). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';
import { heldRelease } from './plans.ts';

export const policy = z.strictObject({
  mode: fields.mode,
  allowedAgentIds: z.array(fields.agentId),
  expiresAt: fields.dateTime,
  maxUses: fields.maxUses.optional(),
  metadata: z.record(z.string(), z.string()),
  passcodeRequired: fields.passcodeRequired,
});

/** What storage knows of a transfer and its share shows. */
const target = z.strictObject({
  filename: fields.filename,
  mimeType: fields.mimeType,
  size: z.int().min(0).optional().describe('Absent for what has no bytes of its own, or not all of them yet'),
});

/** What resolving a share shows. */
const shareFields = {
  id: fields.shareId,
  shareId: fields.shareId.describe('Legacy alias of id'),
  type: fields.targetType,
  targetId: z.string(),
  fileId: z.string().optional(),
  pipeId: z.string().optional().describe('Legacy alias of targetId on file shares'),
  folderId: z.string().optional(),
  filename: z.string().optional(),
  mimeType: z.string().optional(),
  size: z.int().min(0).optional(),
  expiresAt: fields.dateTime.optional(),
  policy,
  createdByUserId: z.string().nullable(),
  createdByAgentId: z.string().nullable(),
  authMode: fields.mode.describe('Legacy alias of policy.mode'),
};

/** `exhausted`: every use is spent. `deleted`: its transfer was. Of those that ended, the owner sees the last days' only. */
export const shareStates = ['active', 'exhausted', 'expired', 'revoked', 'deleted'] as const;
const state = z.enum(shareStates);

/** What a share shows to its owner and to the agent that created it. */
const ownShare = z.strictObject({
  ...shareFields,
  state,
  uses: z.int().min(0).describe('Counted on agent shares, and on open shares while they have a cap'),
  remainingUses: z.int().min(0).optional().describe('Absent without a cap'),
  createdAt: fields.dateTime,
});

const byItsOwner = ['owner_auth_required', 'invalid_owner_credential', 'invalid_agent_credential'] as const;

export const shares = defineContracts({
  resolveShare: {
    service: 'policy',
    summary: 'Resolve a share to its metadata and policy',
    accepts: ['agent_key', 'access_token'],
    http: { method: 'GET', path: '/api/share/{shareId}', status: 200 },
    input: z.strictObject({ shareId: fields.shareId }),
    output: z.strictObject(shareFields),
    errors: ['agent_auth_required', 'invalid_agent_credential', 'agent_not_allowed_for_share', 'share_not_found_or_expired'],
  },
  listShares: {
    service: 'policy',
    summary: 'List your own shares, newest first: an owner all of theirs, an agent those it created',
    accepts: ['owner_session', 'agent_key'],
    required: 'owner_auth_required',
    http: { method: 'GET', path: '/api/shares', status: 200, query: ['state', 'mode', 'agentId', 'targetId', 'limit', 'cursor'] },
    input: z.strictObject({
      state: state.optional(),
      mode: fields.mode.optional(),
      agentId: fields.agentId.optional().describe('The agent that created the share'),
      targetId: fields.text(128).optional(),
      limit: z.int().min(1).max(200).default(50),
      cursor: z.string().max(1_024).optional(),
    }),
    output: z.strictObject({ count: z.int().min(0), shares: z.array(ownShare), nextCursor: z.string().nullable() }),
    errors: [...byItsOwner, 'invalid_cursor'],
  },
  updateShare: {
    service: 'policy',
    summary: 'Change the policy of a share of your own',
    accepts: ['owner_session', 'agent_key'],
    required: 'owner_auth_required',
    http: { method: 'PATCH', path: '/api/share/{shareId}', status: 200 },
    input: z.strictObject({
      shareId: fields.shareId,
      expiresAt: fields.dateTime.optional().describe('In the future; the bytes are kept as long as that'),
      maxUses: fields.maxUses.nullable().optional().describe('Not below the uses that are spent; null removes the cap'),
      allowedAgentIds: fields.allowedAgentIds.optional().describe('Agent shares only'),
      metadata: fields.metadata.optional().describe('Replaces all labels'),
    }),
    output: ownShare,
    errors: [...byItsOwner, 'forbidden_origin', 'share_not_found_or_expired'],
  },
  revokeShare: {
    service: 'policy',
    summary: 'Revoke a share of your own; again answers the same. Its bytes stay until their expiry',
    accepts: ['owner_session', 'agent_key'],
    required: 'owner_auth_required',
    http: { method: 'DELETE', path: '/api/share/{shareId}', status: 200 },
    input: z.strictObject({ shareId: fields.shareId }),
    output: z.strictObject({ id: fields.shareId, revoked: z.literal(true) }),
    errors: [...byItsOwner, 'forbidden_origin', 'share_not_found_or_expired'],
  },
  describeShare: {
    service: 'policy',
    summary: 'What the page of a share shows to whoever holds its link',
    accepts: [],
    input: z.strictObject({ shareId: fields.shareId }),
    output: z.strictObject({
      shareId: fields.shareId,
      type: fields.targetType,
      targetId: z.string(),
      ...target.shape,
      mode: fields.mode,
      expiresAt: fields.dateTime,
      maxUses: fields.maxUses.optional(),
      remainingUses: z.int().min(0).optional(),
      passcodeRequired: fields.passcodeRequired,
    }),
    errors: ['share_not_found_or_expired'],
  },
  createShare: {
    service: 'policy',
    summary: 'Create the share of a transfer; the same transfer gives the same share',
    accepts: [],
    input: z.strictObject({
      shareId: fields.shareId,
      targetType: fields.targetType,
      targetId: fields.transferId,
      target,
      creator: fields.creator,
      release: heldRelease,
      expiresAt: fields.dateTime,
    }),
    output: z.strictObject({ shareId: fields.shareId }),
    errors: [],
  },
  endShares: {
    service: 'policy',
    summary: 'End the shares of transfers that were deleted',
    accepts: [],
    input: z.strictObject({ targetIds: z.array(fields.transferId).max(1_000) }),
    output: z.strictObject({ ended: z.int() }),
    errors: [],
  },
  spendUse: {
    service: 'policy',
    summary: 'Let a fetch through: spend one use of a share, or one grant',
    accepts: [],
    input: z.strictObject({
      fetchId: z.uuid(),
      targetId: fields.transferId,
      /** The one file of the target, a folder, that is fetched; for the record. */
      fileId: fields.fileId.optional(),
      /** Spends from the target's own share where neither a share nor a grant is named. */
      ownShare: z.boolean().optional(),
      shareId: fields.shareId.optional(),
      grant: z.string().max(1_024).optional(),
      passcode: z.string().max(1_024).optional(),
    }),
    output: z.strictObject({
      shareId: fields.shareId,
      /** Whether something was spent that a failed fetch gives back. */
      spent: z.boolean(),
      remainingUses: z.int().min(0).optional(),
    }),
    errors: ['share_not_found_or_expired', 'share_use_limit_exceeded', 'share_id_required', 'grant_required', 'invalid_grant', 'grant_already_used', 'passcode_required', 'invalid_passcode', 'rate_limited', 'transfer_not_found'],
  },
  returnUse: {
    service: 'policy',
    summary: 'Give back what a fetch spent that delivered nothing',
    accepts: [],
    input: z.strictObject({ fetchId: z.uuid() }),
    output: z.strictObject({ returned: z.boolean() }),
    errors: [],
  },
});
