/** Folders: made empty, filled file by file, read as a list, as single files and as one ZIP archive (interface chapter: Folders). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';
import { readTicket } from './transfers.ts';
import { direct } from './uploads.ts';

/** Entries of an archive that one request asks for at most. */
export const archivePage = 256;

const folderId = fields.transferId;
const deleteToken = fields.deleteToken.optional();
const tokenInHeader = { deleteToken: 'X-Delete-Token' };

/** Whoever may fill a folder: its owner as a person, the agent that made it, or the holder of its delete token. */
const bySender = { accepts: ['owner_session', 'agent_key'], proof: 'deleteToken' } as const;
const senderErrors = ['folder_not_found', 'delete_token_required', 'invalid_delete_token', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin'] as const;

const completionState = z.enum(['accepted', 'running', 'ready', 'failed']);

const completion = {
  service: 'storage',
  ...bySender,
  input: z.strictObject({ folderId, fileId: fields.fileId, uploadId: fields.uploadId, operationId: fields.operationId, deleteToken }),
  output: z.strictObject({ operationId: fields.operationId, state: completionState, statusUrl: z.string().describe('To be asked until the operation is done') }),
  errors: [...senderErrors, 'multipart_upload_not_found', 'upload_state_conflict', 'upload_expired', 'idempotency_key_reused'],
} as const;

export const folders = defineContracts({
  createFolder: {
    service: 'storage',
    summary: 'Create a folder and its share; files are added to it afterwards',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'POST', path: '/api/folder', status: 201 },
    idempotent: true,
    input: z.strictObject({ name: fields.filename, ...fields.policyFields }),
    output: fields.uploadResponse.extend({ folderId: folderId.describe('The same as id'), zipUrl: z.string().describe('Address of the ZIP archive') }),
    errors: ['group_not_found', 'idempotency_key_reused', 'agent_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin'],
  },
  declareFile: {
    service: 'storage',
    summary: 'Declare a file of a folder and begin its upload; its parts go the native multipart lane',
    ...bySender,
    http: { method: 'POST', path: '/api/folder/{folderId}/files', status: 201, headers: tokenInHeader, rate: 'bytes' },
    idempotent: true,
    input: z.strictObject({
      folderId, path: fields.path, size: z.int().min(0), mimeType: fields.mimeType.optional(),
      lane: z.enum(['multipart', 'direct']).default('multipart').describe('direct where clients reach the object store; multipart is fallen back to'),
      deleteToken,
    }),
    output: z.strictObject({
      fileId: fields.fileId,
      uploadId: fields.uploadId,
      path: fields.path,
      partSize: z.int(),
      partCount: z.int(),
      maxParallelParts: z.int(),
      expiresAt: fields.dateTime,
      direct,
    }),
    errors: [...senderErrors, 'upload_state_conflict', 'payload_too_large', 'idempotency_key_reused'],
  },
  completeFile: {
    ...completion,
    summary: 'Complete a file of a folder: accepted at once and carried out durably',
    http: { method: 'POST', path: '/api/folder/{folderId}/upload-complete', status: 202, headers: tokenInHeader, handled: true, rate: 'bytes' },
  },
  completeDirectFile: {
    ...completion,
    summary: 'The same for a file whose parts went straight to the object store',
    http: { method: 'POST', path: '/api/folder/{folderId}/upload-direct-complete', status: 202, headers: tokenInHeader, handled: true, rate: 'bytes' },
  },
  readCompletion: {
    service: 'storage',
    summary: 'How far a completion is',
    ...bySender,
    http: { method: 'GET', path: '/api/folder/{folderId}/upload-status', status: 200, query: ['view', 'operationId'], headers: tokenInHeader, handled: true },
    input: z.strictObject({ folderId, view: z.literal('completion'), operationId: fields.operationId, deleteToken }),
    output: z.strictObject({
      operationId: fields.operationId,
      fileId: fields.fileId,
      uploadId: fields.uploadId,
      state: completionState,
      attempts: z.int().min(0),
      done: z.boolean(),
      error: z.strictObject({ code: z.string(), detail: z.string() }).optional().describe('Why it failed; a new operation may follow once that is mended'),
    }),
    errors: [...senderErrors, 'multipart_upload_not_found'],
  },
  listFolder: {
    service: 'storage',
    summary: 'List the files of a folder: all of them to its sender; with share_id those that are ready, to whoever may resolve the share',
    ...bySender,
    http: { method: 'GET', path: '/api/folder/{folderId}', status: 200, query: ['share_id', 'limit', 'cursor'], headers: tokenInHeader, handled: true },
    input: z.strictObject({
      folderId,
      /** Policy let this caller resolve the folder's share. Only the gateway says so. */
      resolved: z.boolean().default(false),
      limit: z.int().min(1).max(1_000).default(100),
      cursor: z.string().max(64).optional(),
      deleteToken,
    }),
    output: z.strictObject({
      folderId,
      name: fields.filename,
      state: z.enum(['empty', 'uploading', 'ready']),
      count: z.int().min(0),
      files: z.array(z.strictObject({
        fileId: fields.fileId,
        path: fields.path,
        size: z.int().min(0),
        mimeType: fields.mimeType,
        state: z.enum(['uploading', 'ready']),
        sha256: fields.sha256.optional(),
        downloadUrl: z.string().optional().describe('Of a ready file in an open folder'),
      })),
      nextCursor: z.string().nullable(),
    }),
    errors: [...senderErrors, 'agent_auth_required', 'agent_not_allowed_for_share', 'share_not_found_or_expired', 'invalid_cursor'],
  },
  zipFolder: {
    service: 'storage',
    summary: 'The ready files of a folder as one ZIP archive; each archive spends one use or grant',
    accepts: [],
    http: {
      method: 'GET', path: '/api/folder/{folderId}/zip', status: 200, query: ['share_id'], handled: true, rate: 'fetch', responseType: 'application/zip',
      headers: { grant: 'X-Access-Grant', passcode: 'X-Share-Passcode' },
    },
    input: z.strictObject({ folderId }),
    /** What the archive holds, counted at one moment. The places of its files come beside it, as 32-bit numbers. */
    output: z.strictObject({
      name: fields.filename,
      createdAt: fields.dateTime,
      entries: z.int().min(1),
      bytes: z.int().min(0),
      nameBytes: z.int().min(1),
      /** Files whose CRC-32 is known only when they have been read. */
      unchecked: z.int().min(0),
    }),
    errors: ['folder_not_found', 'grant_required', 'share_not_found_or_expired', 'share_use_limit_exceeded', 'invalid_grant', 'grant_already_used', 'passcode_required', 'invalid_passcode', 'rate_limited', 'forbidden'],
  },
  listArchive: {
    service: 'storage',
    summary: 'Entries of an archive by their places: the first of those asked for, as many as fit',
    accepts: [],
    /** With tickets only files that are still there; without them those that ended meanwhile, too. */
    input: z.strictObject({ folderId, places: z.array(z.int().min(1)).min(1).max(archivePage), withTickets: z.boolean() }),
    output: z.strictObject({
      entries: z.array(z.strictObject({
        place: z.int(),
        name: z.string(),
        size: z.int().min(0),
        crc32: z.int().min(0).optional(),
        readyAt: fields.dateTime,
        ticket: readTicket.optional(),
      })),
    }),
    errors: ['folder_not_found'],
  },
  recordArchive: {
    service: 'storage',
    summary: 'Record that an archive was sent, or that it broke off',
    accepts: [],
    input: z.strictObject({ folderId, fetchId: z.uuid(), entries: z.int().min(0), whole: z.boolean() }),
    output: z.strictObject({}),
    errors: [],
  },
});
