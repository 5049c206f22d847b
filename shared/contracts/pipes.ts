/** Pipes: a share whose bytes can be fetched while their sender still writes them (interface chapter: Pipes). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import { appendLease } from './appends.ts';
import * as fields from './fields.ts';
import { planHeader } from './plans.ts';
import { readTicket } from './transfers.ts';

const pipeId = fields.transferId;
const writer = { pipeId, lease: z.string() };

/** Why a pipe ended without its last byte. `sender_lost` may also be the gateway that it was sent to; `interrupted` is our own doing. */
export const pipeEnds = ['sender_lost', 'sender_idle', 'too_large', 'digest_mismatch', 'interrupted'] as const;

const writeErrors = ['delete_token_required', 'invalid_delete_token', 'transfer_not_found', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin', 'upload_state_conflict', 'upload_expired', 'payload_too_large'] as const;

export const pipes = defineContracts({
  createPipe: {
    service: 'storage',
    summary: 'Create a pipe: its share can be fetched from the first byte that its sender writes',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'POST', path: '/api/pipe', status: 201, headers: { plan: planHeader }, body: 'empty' },
    idempotent: true,
    input: z.strictObject({
      filename: fields.filename.optional(),
      mimeType: fields.mimeType.optional(),
      ...fields.policyFields,
      plan: z.string().max(65_536).optional(),
    }),
    output: fields.uploadResponse.extend({
      pipeId,
      uploadUrl: z.string().describe('Where the bytes are sent, by PUT with the delete token or the credential of the creator'),
    }),
    errors: ['plan_expired', 'plan_mismatch', 'plan_widened', 'plan_already_used', 'group_not_found', 'idempotency_key_reused', 'agent_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin'],
  },
  openPipe: {
    service: 'storage',
    summary: 'Make a sender the writer of its pipe, once',
    accepts: ['owner_session', 'agent_key'],
    proof: 'deleteToken',
    input: z.strictObject({ pipeId, deleteToken: z.string().max(1_024).optional(), size: z.int().min(0).optional() }),
    output: appendLease,
    errors: [...writeErrors],
  },
  completePipe: {
    service: 'storage',
    summary: 'Write the bytes of a pipe, all in one request; when its sender is lost before the end, the pipe and every fetch of it fail',
    accepts: [],
    http: { method: 'PUT', path: '/api/pipe/{pipeId}', status: 200, headers: { deleteToken: 'X-Delete-Token' }, handled: true, rate: 'bytes', requestType: 'application/octet-stream' },
    input: z.strictObject({ ...writer, size: z.int().min(0), sha256: fields.sha256 }),
    output: z.strictObject({ pipeId, size: z.int().min(0), sha256: fields.sha256 }),
    errors: [...writeErrors, 'digest_mismatch'],
  },
  abortPipe: {
    service: 'storage',
    summary: 'Say that the bytes of a pipe will not be complete',
    accepts: [],
    input: z.strictObject({ ...writer, reason: z.enum(pipeEnds) }),
    output: z.strictObject({ aborted: z.boolean() }),
    errors: [],
  },
  followPipe: {
    service: 'storage',
    summary: 'What has come of a pipe from an offset on, and whether more will',
    accepts: [],
    input: z.strictObject({ pipeId, from: z.int().min(0) }),
    output: z.strictObject({
      state: z.enum(['live', 'complete', 'failed']),
      size: z.int().min(0).describe('Bytes that are stored'),
      /** Those from the offset on, or as many of them as one answer holds. */
      ticket: readTicket,
    }),
    errors: ['transfer_not_found'],
  },
});
