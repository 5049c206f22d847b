/** Transfers: stored bytes, opened for a fetch and deleted (interface chapter: Transfer bytes). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';

/** A piece of a stored blob. */
const segment = z.strictObject({ key: z.string(), offset: z.int().min(0), size: z.int().min(0) });
export type StoredSegment = z.output<typeof segment>;

/** Where the gateway reads bytes: pieces in their order. */
export const readTicket = z.discriminatedUnion('driver', [
  z.strictObject({ driver: z.literal('fs'), segments: z.array(segment) }),
  z.strictObject({
    driver: z.literal('s3'),
    segments: z.array(segment),
    urls: z.record(z.string(), z.string()).describe('Presigned addresses of the first objects; they are good for a short time and for the gateway alone'),
  }),
]);
export type ReadTicket = z.output<typeof readTicket>;

export const transfers = defineContracts({
  openTransfer: {
    service: 'storage',
    summary: 'Open a transfer for a fetch: its headers, and its bytes or where they are',
    accepts: [],
    http: {
      method: 'GET', path: '/api/dl/{id}', status: 200, query: ['share_id'], handled: true, rate: 'fetch', responseType: 'application/octet-stream',
      headers: { grant: 'X-Access-Grant', passcode: 'X-Share-Passcode', range: 'Range', ifRange: 'If-Range', ifNoneMatch: 'If-None-Match', ifMatch: 'If-Match' },
    },
    input: z.strictObject({ id: fields.transferId, metadataOnly: z.boolean().default(false) }),
    output: z.strictObject({
      type: fields.targetType,
      filename: fields.filename,
      mimeType: fields.mimeType,
      size: z.int().min(0),
      sha256: fields.sha256.optional(),
      createdAt: fields.dateTime,
      /** Absent when the bytes came with the answer. */
      ticket: readTicket.optional(),
    }),
    errors: ['transfer_not_found', 'share_id_required', 'grant_required', 'share_not_found_or_expired', 'share_use_limit_exceeded', 'invalid_grant', 'grant_already_used', 'passcode_required', 'invalid_passcode', 'rate_limited', 'range_not_satisfiable', 'precondition_failed', 'forbidden'],
  },
  keepTransfer: {
    service: 'storage',
    summary: 'Keep the bytes of a transfer at least until a time; never shortens',
    accepts: [],
    input: z.strictObject({ id: fields.transferId, until: fields.dateTime }),
    output: z.strictObject({ expiresAt: fields.dateTime }),
    errors: ['transfer_not_found'],
  },
  deleteTransfer: {
    service: 'storage',
    summary: 'Delete a transfer before its expiry; again answers the same',
    accepts: ['owner_session', 'agent_key'],
    proof: 'deleteToken',
    http: { method: 'DELETE', path: '/api/dl/{id}', status: 200, headers: { deleteToken: 'X-Delete-Token' } },
    input: z.strictObject({ id: fields.transferId, deleteToken: z.string().max(1_024).optional() }),
    output: z.strictObject({ id: fields.transferId, deleted: z.literal(true) }),
    errors: ['delete_token_required', 'invalid_delete_token', 'transfer_not_found', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin'],
  },
});
