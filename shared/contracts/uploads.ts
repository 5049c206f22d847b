/** Uploads: the single lane and the native multipart lane (interface chapter: Native multipart lane). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';
import { planHeader, transferFields } from './plans.ts';

const plan = z.string().max(65_536);
const partNumber = z.int().min(1).max(10_000);
const etag = z.string().regex(/^"?[\w+/=-]{16,128}"?$/, 'must be the etag that the part was answered with');
const uploadState = z.enum(['initialized', 'completing', 'completed', 'aborted', 'expired']);

/** How a client narrows its plan when it uses the single lane. */
export const narrowing = z.strictObject({
  ttl: fields.ttl.optional(),
  maxUses: fields.maxUses.optional(),
  allowedAgentIds: fields.allowedAgentIds.optional(),
});

const place = { key: z.string(), maxBytes: z.int().min(0) };

/** Where the gateway writes bytes, and how many at most. The driver decides what more it needs to know. */
export const writeTicket = z.discriminatedUnion('driver', [
  z.strictObject({ driver: z.literal('fs'), ...place, offset: z.int().min(0) }),
  z.strictObject({
    driver: z.literal('s3'),
    ...place,
    put: z.strictObject({ url: z.string(), size: z.int().min(0) }).optional().describe('Where bytes of a known length go; absent for a stream, which is cut into parts'),
    partSize: z.int().min(1).describe('Bytes of the parts that a stream is cut into'),
    touchMs: z.int().min(1).describe('How often the writer says that it is still writing'),
  }),
]);
export type WriteTicket = z.output<typeof writeTicket>;
export type FsWriteTicket = Extract<WriteTicket, { driver: 'fs' }>;
export type S3WriteTicket = Extract<WriteTicket, { driver: 's3' }>;

/** What the gateway saw while it wrote. */
const written = z.strictObject({
  size: z.int().min(0),
  crc32: z.int().min(0),
  sha256: fields.sha256.optional(),
  etag: z.string().optional().describe('What the object store calls the bytes'),
});
export type Written = z.output<typeof written>;

/** Where a client sends a part by itself, and exactly how many bytes. */
const directPart = z.strictObject({ partNumber, url: z.string(), headers: z.record(z.string(), z.string()).describe('To be sent with the bytes'), size: z.int() });
const directParts = { parts: z.array(directPart), expiresAt: fields.dateTime.describe('Until when the addresses are good') };

const planned = { plan: plan.optional() };
const planInHeader = { plan: planHeader };
const lane = { planId: fields.planId, plan, narrowing };
const laneErrors = ['plan_required', 'plan_expired', 'plan_mismatch', 'plan_widened', 'plan_already_used', 'payload_too_large', 'digest_mismatch', 'upload_expired'] as const;
const uploadErrors = ['multipart_upload_not_found', 'plan_required', 'plan_expired', 'plan_mismatch', 'agent_auth_required', 'owner_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden', 'forbidden_origin'] as const;

export const uploads = defineContracts({
  storeSmall: {
    service: 'storage',
    summary: 'Single lane, a small asset: its bytes ride with the request and are stored in the row',
    accepts: [],
    input: z.strictObject({ ...lane, sha256: fields.sha256.optional() }),
    output: fields.uploadResponse,
    errors: [...laneErrors],
  },
  openSingle: {
    service: 'storage',
    summary: 'Single lane: check the plan and say where the bytes go',
    accepts: [],
    input: z.strictObject({ ...lane, size: z.int().min(0).optional() }),
    output: z.strictObject({ ticket: writeTicket, sha256Wanted: z.boolean() }),
    errors: [...laneErrors],
  },
  finishSingle: {
    service: 'storage',
    summary: 'Single lane: make the written bytes a transfer with its share',
    accepts: [],
    input: z.strictObject({ ...lane, key: z.string(), written }),
    output: fields.uploadResponse,
    errors: [...laneErrors],
    deadlineMs: 10_000,
  },
  abandonBlob: {
    service: 'storage',
    summary: 'Say that written bytes will not be finished, so that they go before the sweep finds them',
    accepts: [],
    input: z.strictObject({ key: z.string() }),
    output: z.strictObject({ abandoned: z.boolean() }),
    errors: [],
  },
  initUpload: {
    service: 'storage',
    summary: 'Begin a multipart upload; a plan is optional and binds when it is sent',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'POST', path: '/api/upload/multipart/init', status: 201, headers: planInHeader },
    idempotent: true,
    input: z.strictObject({ ...transferFields, size: fields.size, partSize: z.int().min(1).optional(), sha256: fields.sha256.optional(), ...planned }),
    output: z.strictObject({
      uploadId: fields.uploadId,
      transferId: fields.transferId,
      state: uploadState,
      partSize: z.int(),
      partCount: z.int(),
      maxParallelParts: z.int(),
      expiresAt: fields.dateTime,
      direct: z.strictObject({ ...directParts, next: partNumber.optional().describe('The first part without an address here') }).optional()
        .describe('Under a plan for the direct lane: each part is sent to its address by PUT'),
    }),
    errors: ['plan_expired', 'plan_mismatch', 'plan_widened', 'plan_already_used', 'payload_too_large', 'group_not_found', 'digest_mismatch', 'idempotency_key_reused', 'agent_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin'],
  },
  openPart: {
    service: 'storage',
    summary: 'Check that a part may come and say where its bytes go',
    accepts: ['owner_session', 'agent_key'],
    input: z.strictObject({ uploadId: fields.uploadId, partNumber, size: z.int().min(0).optional(), ...planned }),
    output: z.strictObject({ ticket: writeTicket, size: z.int().describe('Bytes that this part must have') }),
    errors: [...uploadErrors, 'upload_state_conflict', 'upload_expired', 'part_size_mismatch'],
  },
  finishPart: {
    service: 'storage',
    summary: 'Record a written part; the same number again replaces it',
    accepts: [],
    http: { method: 'POST', path: '/api/upload/multipart/part', status: 200, query: ['uploadId', 'partNumber'], headers: planInHeader, handled: true, rate: 'bytes', requestType: 'application/octet-stream' },
    input: z.strictObject({ uploadId: fields.uploadId, partNumber, key: z.string(), written }),
    output: z.strictObject({ uploadId: fields.uploadId, partNumber, size: z.int(), etag, sha256: fields.sha256 }),
    errors: [...uploadErrors, 'upload_state_conflict', 'upload_expired', 'part_size_mismatch', 'digest_mismatch'],
  },
  signDirectParts: {
    service: 'storage',
    summary: 'Direct lane: more addresses of parts, or fresh ones',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'POST', path: '/api/upload/multipart/direct-urls', status: 200, headers: planInHeader, rate: 'bytes' },
    input: z.strictObject({ uploadId: fields.uploadId, partNumbers: z.array(partNumber).min(1).max(100), ...planned }),
    output: z.strictObject({ uploadId: fields.uploadId, ...directParts }),
    errors: [...uploadErrors, 'upload_state_conflict', 'upload_expired'],
  },
  completeUpload: {
    service: 'storage',
    summary: 'Complete a multipart upload; the same again gives the same answer',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'POST', path: '/api/upload/multipart/complete', status: 201, headers: planInHeader },
    idempotent: true,
    input: z.strictObject({
      uploadId: fields.uploadId,
      parts: z.array(z.strictObject({ partNumber, etag })).max(10_000).optional(),
      sha256: fields.sha256.optional(),
      ...planned,
    }),
    output: fields.uploadResponse,
    errors: [...uploadErrors, 'upload_state_conflict', 'upload_expired', 'plan_already_used', 'part_size_mismatch', 'digest_mismatch', 'idempotency_key_reused'],
    // A promised digest is computed over the whole file here.
    deadlineMs: 120_000,
  },
  abortUpload: {
    service: 'storage',
    summary: 'Abort a multipart upload',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'POST', path: '/api/upload/multipart/abort', status: 200, headers: planInHeader },
    input: z.strictObject({ uploadId: fields.uploadId, ...planned }),
    output: z.strictObject({ uploadId: fields.uploadId, state: uploadState }),
    errors: [...uploadErrors, 'upload_state_conflict'],
  },
  readUploadStatus: {
    service: 'storage',
    summary: 'Read the status of a multipart upload',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'GET', path: '/api/upload/multipart/status', status: 200, query: ['uploadId'], headers: planInHeader },
    input: z.strictObject({ uploadId: fields.uploadId, ...planned }),
    output: z.strictObject({
      uploadId: fields.uploadId,
      transferId: fields.transferId,
      state: uploadState,
      size: z.int(),
      partSize: z.int(),
      receivedBytes: z.int(),
      parts: z.array(z.strictObject({ partNumber, size: z.int(), etag })),
      expiresAt: fields.dateTime,
    }),
    errors: [...uploadErrors],
  },
});
