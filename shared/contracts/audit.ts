/** The audit record: events of an owner's own resources (interface chapters: Audit, Events). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import { outcomes, targetTypes } from '../events.ts';
import * as fields from './fields.ts';

export const auditEvent = z.strictObject({
  id: z.uuid(),
  eventType: z.string(),
  occurredAt: fields.dateTime,
  ownerId: z.string().nullable(),
  actor: z.strictObject({ type: z.enum(['owner', 'agent', 'anonymous', 'service']), id: z.string().nullable() }),
  agentId: z.string().nullable(),
  targetType: z.enum(targetTypes).nullable(),
  targetId: z.string().nullable(),
  shareId: z.string().nullable(),
  outcome: z.enum(outcomes),
  code: z.string().optional(),
  requestId: z.string().nullable(),
  ip: z.string().optional(),
  data: z.record(z.string(), z.unknown()),
});

/** The media type of an export: one audit event a line. */
export const exportType = 'application/x-ndjson';

export const audit = defineContracts({
  queryAudit: {
    service: 'audit',
    summary: 'Query the audit record of your own resources, newest first; format=ndjson streams all that matches, one event a line',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: {
      method: 'GET', path: '/api/audit', status: 200, query: ['eventType', 'agentId', 'targetType', 'targetId', 'shareId', 'from', 'to', 'limit', 'cursor', 'format'],
      handled: true, otherTypes: [exportType],
    },
    input: z.strictObject({
      eventType: fields.text(64).optional(),
      agentId: fields.agentId.optional(),
      targetType: z.enum(targetTypes).optional(),
      targetId: fields.text(128).optional(),
      shareId: fields.shareId.optional(),
      from: fields.dateTime.optional().describe('Earliest occurred-at time, inclusive'),
      to: fields.dateTime.optional().describe('Latest occurred-at time, exclusive'),
      limit: z.int().min(1).max(100).default(50),
      cursor: z.string().max(1_024).optional(),
      /** Looked at by the gateway: an export is made of pages. */
      format: z.enum(['json', 'ndjson']).optional().describe('json, when absent, is a page. ndjson is an export: everything that matches; it takes neither limit nor cursor'),
    }),
    output: z.strictObject({ count: z.int().min(0), events: z.array(auditEvent), nextCursor: z.string().nullable() }),
    errors: ['owner_auth_required', 'invalid_owner_credential', 'invalid_cursor'],
  },
});
