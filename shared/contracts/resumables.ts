/** Resumable uploads: bytes in order, over as many requests as it takes (interface chapter: TUS adapter). The gateway speaks the protocol; here is what it stands on. */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import { appendLease } from './appends.ts';
import * as fields from './fields.ts';

/** Bytes of the whole; unlike a planned size it may be nothing. */
const size = z.int().min(0);

/** A resumable upload as its sender sees it. */
const resumable = z.strictObject({
  uploadId: fields.uploadId,
  offset: z.int().min(0).describe('Bytes that are stored'),
  size: size.optional().describe('Absent until the sender says it'),
  /** The sender's own words at the beginning, to be repeated to it. */
  metadata: z.string().optional(),
  createdAt: fields.dateTime,
  expiresAt: fields.dateTime,
});
export type Resumable = z.output<typeof resumable>;

const which = { uploadId: fields.uploadId };
const bySender = { service: 'storage', accepts: ['owner_session', 'agent_key'] } as const;
const senderErrors = ['multipart_upload_not_found', 'upload_expired', 'agent_auth_required', 'owner_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden', 'forbidden_origin'] as const;

export const resumables = defineContracts({
  beginResumable: {
    service: 'storage',
    summary: 'Begin a resumable upload under its plan; the same plan again answers the upload that it began',
    accepts: [],
    input: z.strictObject({ plan: z.string().max(65_536), size: size.optional(), metadata: z.string().max(8_192).optional() }),
    output: resumable,
    errors: ['plan_expired', 'plan_mismatch', 'plan_widened', 'plan_already_used', 'payload_too_large'],
  },
  readResumable: {
    ...bySender,
    summary: 'How much of a resumable upload is stored',
    input: z.strictObject(which),
    output: resumable,
    errors: [...senderErrors],
  },
  declareSize: {
    ...bySender,
    summary: 'Say how large a resumable upload will be that was begun without',
    input: z.strictObject({ ...which, size }),
    output: z.strictObject({ size }),
    errors: [...senderErrors, 'upload_state_conflict', 'payload_too_large'],
  },
  continueResumable: {
    ...bySender,
    summary: 'Become the writer of a resumable upload, in place of any other: a sender that comes back has lost its earlier connection',
    input: z.strictObject({ ...which, offset: z.int().min(0) }),
    output: appendLease,
    errors: [...senderErrors, 'upload_state_conflict', 'upload_offset_mismatch'],
  },
  finishResumable: {
    ...bySender,
    summary: 'Make a resumable upload that is wholly stored a transfer with its share; again answers the same',
    input: z.strictObject(which),
    output: fields.uploadResponse,
    errors: [...senderErrors, 'upload_state_conflict', 'plan_already_used'],
    deadlineMs: 10_000,
  },
  abortResumable: {
    ...bySender,
    summary: 'End a resumable upload without a transfer; again does no harm',
    input: z.strictObject(which),
    output: z.strictObject({ uploadId: fields.uploadId }),
    errors: [...senderErrors, 'upload_state_conflict'],
  },
});
