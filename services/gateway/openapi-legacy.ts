/** The description of the retired surfaces: switched off, that they are; switched on, how they are used. */
import { mode, templateId, uploadResponse } from '../../shared/contracts/fields.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import type { Surfaces } from './legacy-surfaces.ts';
import { everywhere, jsonSchema, operationKey, parameter, problemsOf, type Json } from './openapi-parts.ts';

type Described = readonly [path: string, method: string, operation: Json];

export function legacyOperations(legacy: Surfaces): readonly Described[] {
  return [
    ['/api/upload', 'post', legacy.has('upload') ? uploadForm : retired],
    ...(legacy.has('tus') ? tusOperations : [['/api/tus', 'post', retired] as Described]),
  ];
}

const retired: Json = {
  operationId: undefined,
  summary: 'Retired; every method answers 410. Use a transfer plan',
  tags: ['Transfer plan and creation'],
  deprecated: true,
  responses: problemsOf(['transfer_surface_retired']),
};

const formText = (description: string): Json => ({ type: 'string', description });

/** Shown where LEGACY_SURFACES has it. */
const uploadForm: Json = {
  operationId: 'uploadForm',
  summary: 'Send a file and its policy as one form. A retired surface that this deployment has switched on; use a transfer plan',
  tags: ['Transfer plan and creation'],
  deprecated: true,
  security: [{ agent_key: [] }, { owner_session: [] }, {}],
  parameters: [parameter('header', 'Idempotency-Key', operationKey, false)],
  requestBody: { required: true, content: { 'multipart/form-data': { schema: {
    type: 'object',
    required: ['file'],
    properties: {
      file: { type: 'string', format: 'binary' },
      ttl: { type: 'integer', minimum: 30, description: 'Seconds' },
      max_uses: { type: 'integer', minimum: 1 },
      auth_mode: jsonSchema(mode, 'input'),
      allowed_agent_ids: formText('Separated by commas'),
      policy_template_id: jsonSchema(templateId, 'input'),
      policy_metadata: formText('A JSON object'),
      metadata: formText('Another name of policy_metadata'),
      agent_group_id: formText('Fills in the policy defaults of one of your agent groups'),
      passcode: formText('A fetch then needs it in X-Share-Passcode'),
    },
    additionalProperties: false,
  } } } },
  responses: {
    201: { description: 'The transfer and its share', content: { 'application/json': { schema: jsonSchema(uploadResponse, 'output') } } },
    ...problemsOf(['payload_too_large', 'unsupported_media_type', 'group_not_found', 'idempotency_key_reused', 'plan_expired', 'upload_expired', 'agent_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin', ...everywhere]),
  },
};

const tusHeader = (name: string, required: boolean, description: string) => parameter('header', name, { type: 'string', description }, required);

function tusOperation(name: string, told: { summary: string; headers: readonly Json[]; body?: boolean; path?: boolean; status: number; errors: readonly ErrorCode[]; other?: Json }): Json {
  return {
    operationId: name,
    summary: `TUS 1.0.0: ${told.summary}. A retired surface that this deployment has switched on; use a transfer plan`,
    tags: ['Transfer plan and creation'],
    deprecated: true,
    security: [{ agent_key: [] }, { owner_session: [] }, {}],
    parameters: [...(told.path ? [parameter('path', 'uploadId', { type: 'string' }, true)] : []), tusHeader('Tus-Resumable', true, '1.0.0'), ...told.headers],
    ...(told.body && { requestBody: { required: false, content: { 'application/offset+octet-stream': { schema: { type: 'string', format: 'binary' } } } } }),
    responses: {
      [told.status]: { description: 'Done; the answer that completes the upload tells the share in X-Transfer-Id, X-Share-Id, X-Share-Url, X-Download-Url, X-Expires-At and X-Delete-Token' },
      ...told.other,
      ...problemsOf(['precondition_failed', 'agent_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin', ...told.errors, ...everywhere]),
    },
  };
}

const ofUpload: readonly ErrorCode[] = ['multipart_upload_not_found', 'upload_expired', 'owner_auth_required', 'forbidden'];

/** Shown where LEGACY_SURFACES has them. OPTIONS says the same to clients. */
const tusOperations: readonly Described[] = [
  ['/api/tus', 'post', tusOperation('createTusUpload', {
    summary: 'Begin a resumable upload, with its first bytes or without', body: true, status: 201,
    headers: [
      tusHeader('Upload-Length', false, 'Bytes of the whole'), tusHeader('Upload-Defer-Length', false, '1: the length is said later'),
      tusHeader('Upload-Metadata', false, 'filename, filetype, and the policy fields of POST /api/upload'), tusHeader('X-Share-Passcode', false, 'A fetch then needs it, too'),
      parameter('header', 'Idempotency-Key', operationKey, false),
    ],
    errors: ['payload_too_large', 'group_not_found', 'idempotency_key_reused', 'plan_already_used', 'upload_offset_mismatch', 'upload_state_conflict'],
  })],
  ['/api/tus/{uploadId}', 'head', tusOperation('readTusUpload', { summary: 'How many bytes are stored', path: true, headers: [], status: 200, errors: ofUpload })],
  ['/api/tus/{uploadId}', 'patch', tusOperation('appendToTusUpload', {
    summary: 'Append bytes', path: true, body: true, status: 204,
    headers: [
      tusHeader('Upload-Offset', true, 'How many bytes are stored'), tusHeader('Upload-Length', false, 'Once, where it was deferred'),
      tusHeader('Upload-Checksum', false, 'md5, sha1 or sha256, and the digest of this body in base64'),
    ],
    other: { 460: { description: 'The bytes do not have their checksum; none of them is stored', content: { 'text/plain': { schema: { type: 'string' } } } } },
    errors: [...ofUpload, 'upload_offset_mismatch', 'upload_state_conflict', 'payload_too_large', 'unsupported_media_type', 'plan_already_used'],
  })],
  ['/api/tus/{uploadId}', 'delete', tusOperation('endTusUpload', { summary: 'End an upload that is not completed', path: true, headers: [], status: 204, errors: [...ofUpload, 'upload_state_conflict'] })],
];
