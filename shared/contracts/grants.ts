/** Grants: one agent's permission to fetch one target once (interface chapter: Grant response). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';

export const grants = defineContracts({
  issueGrant: {
    service: 'policy',
    summary: 'Issue a one-time grant for an agent share',
    accepts: ['agent_key'],
    required: 'agent_auth_required',
    // Each fetch from an agent share needs one: whoever may fetch so often must be granted as often.
    http: { method: 'POST', path: '/api/agent/grants', status: 201, rate: 'fetch' },
    idempotent: true,
    input: z.strictObject({ shareId: fields.shareId }),
    output: z.strictObject({
      accessToken: z.string().describe('One-time grant token'),
      targetType: fields.targetType,
      targetId: z.string(),
      expiresAt: fields.dateTime,
    }),
    errors: ['agent_auth_required', 'invalid_agent_credential', 'agent_not_allowed_for_share', 'share_not_found_or_expired', 'share_use_limit_exceeded', 'idempotency_key_reused'],
  },
});
