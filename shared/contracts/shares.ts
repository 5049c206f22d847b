/** Shares: a transfer under an access policy, and the uses that fetches spend (interface chapters: Share resolve response, Policy). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';
import { release } from './plans.ts';

export const policy = z.strictObject({
  mode: fields.mode,
  allowedAgentIds: z.array(fields.agentId),
  expiresAt: fields.dateTime,
  maxUses: fields.maxUses.optional(),
  metadata: z.record(z.string(), z.string()),
});

const shareType = z.enum(['file', 'pipe', 'folder']);

/** What storage knows of a transfer and its share shows. */
const target = z.strictObject({
  filename: fields.filename,
  mimeType: fields.mimeType,
  size: z.int().min(0),
});

export const shares = defineContracts({
  resolveShare: {
    service: 'policy',
    summary: 'Resolve a share to its metadata and policy',
    accepts: ['agent_key', 'access_token'],
    http: { method: 'GET', path: '/api/share/{shareId}', status: 200 },
    input: z.strictObject({ shareId: fields.shareId }),
    output: z.strictObject({
      id: fields.shareId,
      shareId: fields.shareId.describe('Legacy alias of id'),
      type: shareType,
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
    }),
    errors: ['agent_auth_required', 'invalid_agent_credential', 'agent_not_allowed_for_share', 'share_not_found_or_expired'],
  },
  describeShare: {
    service: 'policy',
    summary: 'What the page of a share shows to whoever holds its link',
    accepts: [],
    input: z.strictObject({ shareId: fields.shareId }),
    output: z.strictObject({
      shareId: fields.shareId,
      targetId: z.string(),
      ...target.shape,
      mode: fields.mode,
      expiresAt: fields.dateTime,
      maxUses: fields.maxUses.optional(),
      remainingUses: z.int().min(0).optional(),
    }),
    errors: ['share_not_found_or_expired'],
  },
  createShare: {
    service: 'policy',
    summary: 'Create the share of a stored transfer; the same transfer gives the same share',
    accepts: [],
    input: z.strictObject({
      shareId: fields.shareId,
      targetId: fields.transferId,
      target,
      creator: fields.creator,
      release,
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
      shareId: fields.shareId.optional(),
      grant: z.string().max(1_024).optional(),
    }),
    output: z.strictObject({
      shareId: fields.shareId,
      /** Whether something was spent that a failed fetch gives back. */
      spent: z.boolean(),
      remainingUses: z.int().min(0).optional(),
    }),
    errors: ['share_not_found_or_expired', 'share_use_limit_exceeded', 'share_id_required', 'grant_required', 'invalid_grant', 'grant_already_used', 'transfer_not_found'],
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
