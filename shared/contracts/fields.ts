/** The fields that more than one noun has, with their bounds (interface chapter: Resources and their fields). */
import { z } from 'zod';

/** Text that PostgreSQL and JSON can hold: well-formed Unicode without U+0000. */
export function text(max: number) {
  return z.string().min(1).max(max).refine((value) => value.isWellFormed() && !value.includes('\0'), 'must be well-formed text without U+0000');
}

/** An id with its prefix. */
export function id(prefix: string) {
  return z.string().max(64).regex(new RegExp(`^${prefix}[A-Za-z0-9]+$`), `must look like ${prefix}…`);
}

export const transferId = id('trf_');
export const fileId = id('fil_');
/** What bytes are stored as: a transfer, or a file of a folder. */
export const storedId = z.string().max(64).regex(/^(trf|fil)_[A-Za-z0-9]+$/, 'must look like trf_… or fil_…');
export const shareId = id('shr_');
/** The prefix `multipart_` was seen on ids of earlier releases; no upload of ours has it, so it is looked up and not found. */
export const uploadId = z.string().max(64).regex(/^(mpu|multipart)_[A-Za-z0-9]+$/, 'must look like mpu_…');
export const planId = id('pln_');
export const agentId = z.string().regex(/^[A-Za-z0-9._:-]{1,128}$/, 'must be 1 to 128 of A-Z a-z 0-9 . _ : -');
export const agentGroupId = id('agrp_');
export const permissionId = id('perm_');
export const keyId = z.string().regex(/^[A-Za-z0-9]{1,64}$/, 'must be letters and digits');

export const dateTime = z.iso.datetime({ offset: true });

export const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lowercase hexadecimal digits');

const byteLength = (value: string) => Buffer.byteLength(value, 'utf8');

/**
 * A file's name: 1 to 255 bytes of UTF-8 after normalisation to NFC, no control characters and no path separators,
 * so that no name can leave the folder it is saved in or break out of a header.
 */
export const filename = z
  .string()
  .min(1, 'must be 1 to 255 bytes')
  .transform((value) => (value.isWellFormed() ? value.normalize('NFC') : value))
  .refine((value) => value.isWellFormed(), 'must be well-formed text')
  .refine((value) => byteLength(value) <= 255, 'must be 1 to 255 bytes')
  // eslint-disable-next-line no-control-regex
  .refine((value) => !/[\u0000-\u001f\u007f-\u009f/\\\u2028\u2029]/u.test(value), 'must not contain control characters or path separators')
  .refine((value) => value !== '.' && value !== '..', 'must not be . or ..');

/**
 * Where a file is in its folder: 1 to 1,024 bytes of UTF-8 after normalisation to NFC, names separated by `/`, each good as a file's name.
 * It begins with no separator and no drive, so it leads nowhere else.
 */
export const path = z
  .string()
  .min(1, 'must be 1 to 1024 bytes')
  .transform((value) => (value.isWellFormed() ? value.normalize('NFC') : value))
  .refine((value) => byteLength(value) <= 1_024, 'must be 1 to 1024 bytes')
  .refine((value) => !/^[A-Za-z]:/.test(value), 'must not begin with a drive')
  .refine((value) => value.split('/').every((name) => filename.safeParse(name).success), 'must be names separated by /, none of them empty, . or .., without control characters and backslashes');

export const mimeType = z
  .string()
  .max(255)
  .regex(/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(; ?[\w!#$&^.+-]+=([\w!#$&^.+/-]+|"[\w!#$&^.+/ -]*"))*$/, 'must be a media type such as application/json');

/** Free labels: at most 16, names of 1 to 64 and values of at most 256 characters. */
export const metadata = z
  .record(text(64), z.string().max(256).refine((value) => value.isWellFormed() && !value.includes('\0'), 'must be well-formed text without U+0000'))
  .refine((labels) => Object.keys(labels).length <= 16, 'must have at most 16 keys');

/** An allow list: each agent once, at most 100. */
export const allowedAgentIds = z.array(agentId).max(100).transform((ids) => [...new Set(ids)]);

/** What a share is of. */
export const targetType = z.enum(['file', 'pipe', 'folder']);

export const mode = z.enum(['open', 'agent']);
export const templateId = z.enum(['public', 'public-once', 'agent-only', 'expiring-handoff', 'passcode-ready']);

/**
 * The passcode of a share: 4 to 128 characters. No control characters, and no space at an end: it travels in a header.
 * In no answer, row, event or log is it ever found again.
 */
export const passcode = z
  .string()
  .refine((value) => value.isWellFormed(), 'must be well-formed text')
  .refine((value) => [...value].length >= 4 && [...value].length <= 128, 'must be 4 to 128 characters')
  .refine((value) => !/^\s|\s$|[\p{Cc}\p{Zl}\p{Zp}]/u.test(value), 'must not contain control characters, nor begin or end with a space');

/** What is kept of a passcode. */
export const passcodeHash = z.string().max(256);

/** Shown where a fetch needs the passcode, and absent elsewhere. */
export const passcodeRequired = z.literal(true).optional().describe('A fetch needs the passcode in X-Share-Passcode');

/** Seconds. The upper bound is a setting of the deployment, checked where the plan is made. */
export const ttl = z.int().min(30);
export const maxUses = z.int().min(1).max(1_000_000_000);
/** Bytes of a transfer to be made. */
export const size = z.int().min(1);

/** A caller's own name for one operation. */
export const operationId = z.string().regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters');

/** The secret of whoever made a transfer. */
export const deleteToken = z.string().max(1_024);

/** The policy fields of every creation request. Explicit ones override the group's defaults, and those the template. */
export const policyFields = {
  ttl: ttl.optional().describe('Seconds until the share expires. Choose the duration of the workflow stage plus a margin. Normally a day when absent, and a week at most'),
  maxUses: maxUses.optional().describe('How many fetches the share allows in all; as many as come until its expiry when absent'),
  authMode: mode.optional().describe('open: whoever holds the link may fetch. agent: only the agents of allowedAgentIds, each fetch with a one-time grant'),
  allowedAgentIds: allowedAgentIds.optional().describe('The agents that may fetch, for authMode agent; ids are matched exactly'),
  policyTemplateId: templateId.optional().describe('A ready-made policy, which explicit fields override. public: open. public-once: open, one fetch. agent-only: the agents of allowedAgentIds. expiring-handoff: those agents, one fetch, one hour. passcode-ready: open, ten fetches, one day'),
  agentGroupId: agentGroupId.optional().describe('Fills in the policy defaults of one of your agent groups'),
  policyMetadata: metadata.optional().describe('Labels of your own, such as a workflow or a channel; the receiver sees them'),
  passcode: passcode.optional().describe('A fetch then needs it in X-Share-Passcode'),
};

/** What every creation route answers. */
export const uploadResponse = z.strictObject({
  id: transferId.describe('Transfer id'),
  shareId,
  shareUrl: z.string().describe('Page address of the share'),
  downloadUrl: z.string().describe('Byte address'),
  expiresAt: dateTime,
  deleteToken: z.string().describe('Sender-side secret. Keep it private with the sender record.'),
});

/** Who made a resource: all null for an anonymous sender. */
export const creator = z.strictObject({
  ownerId: z.string().nullable(),
  agentId: z.string().nullable(),
});
