/** The one error table: every code the interface can answer, its HTTP status and its public text. */

interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  /** Whether the same request may succeed when sent again unchanged. */
  readonly retryable?: true;
  /** What the caller can do about it; shown on the code's page. */
  readonly advice: string;
}

const table = {
  agent_auth_required: { status: 401, title: 'An agent credential is required', advice: 'Send `Authorization: Bearer <agent key>`; on resolve an access token is accepted too.' },
  owner_auth_required: { status: 401, title: 'An owner session is required', advice: 'Sign in with `POST /api/owner/session` and send the session cookie or `Authorization: Bearer aos_…`.' },
  grant_required: { status: 401, title: 'A grant is required to fetch from an agent share', advice: 'Ask for one with `POST /api/agent/grants` and send it as `X-Access-Grant`.' },
  passcode_required: { status: 401, title: 'A passcode is required to fetch from this share', advice: 'Send the passcode that the sender gave you as `X-Share-Passcode`. Nothing was spent.' },
  delete_token_required: { status: 401, title: 'A delete token or the owner session is required', advice: 'Send the `deleteToken` of the upload response as `X-Delete-Token`, or sign in as the owner.' },
  plan_required: { status: 401, title: 'A transfer plan is required', advice: 'Ask for a plan with `POST /api/transfer-plan` and send it as `X-Transfer-Plan`.' },
  invalid_agent_credential: { status: 401, title: 'The agent credential is not valid here', advice: 'The key or token is unknown, revoked, expired, or of a kind that this endpoint does not accept.' },
  invalid_owner_credential: { status: 401, title: 'The owner credential is not valid', advice: 'The e-mail and password do not match, or the session has ended. Sign in again.' },
  plan_expired: { status: 401, title: 'The transfer plan has expired', advice: 'Ask for a new plan; a plan is valid until its `expiresAt`.' },
  agent_not_allowed_for_share: { status: 403, title: 'The agent is not on the allow list of this share', advice: 'Ask the sender to create a share that names this agent.' },
  invalid_grant: { status: 403, title: 'The grant is not valid for this fetch', advice: 'It is malformed, expired, or for another target. Ask for a new grant and fetch again.' },
  invalid_passcode: { status: 403, title: 'The passcode is not the one of this share', advice: 'Ask the sender for the passcode. Nothing was spent; after too many wrong ones the share waits for a while.' },
  invalid_password: { status: 403, title: 'The current password is not right', advice: 'Send the present password of the account as `currentPassword`. Nothing was changed.' },
  invalid_oidc_callback: { status: 403, title: 'This is not the sign-in that this browser began', advice: 'It was begun elsewhere, too long ago, or has come back before. Begin again at `/api/owner/oidc/start`.' },
  invalid_oidc_token: { status: 403, title: 'The provider’s answer cannot be believed', advice: 'Its issuer, audience, nonce, algorithm or signature is not right. Nobody was signed in; tell whoever runs the exchange.' },
  oidc_sign_in_refused: { status: 403, title: 'This sign-in is refused', advice: 'The provider did not let you in, or does not vouch for an e-mail address that may sign in here.' },
  invalid_delete_token: { status: 403, title: 'The delete token does not match', advice: 'Send the token that was returned when this transfer was created.' },
  plan_widened: { status: 403, title: 'The request asks for more than its plan allows', advice: 'A plan may be narrowed, never widened: smaller sizes, shorter ttl, fewer uses, fewer agents.' },
  plan_mismatch: { status: 403, title: 'The plan does not belong to this request', advice: 'The signature, lane, plan id or file differs from what was planned.' },
  forbidden_origin: { status: 403, title: 'Requests from this origin are refused', advice: 'Requests that use the session cookie must come from the exchange itself; so must those to `/mcp` that name an origin, and its `Host` must be a name of the exchange.' },
  forbidden: { status: 403, title: 'The caller may not do this', advice: 'Use a credential of the owner or agent that created the resource.' },
  share_not_found_or_expired: { status: 404, title: 'The share does not exist or has expired', advice: 'Check the id; ask the sender for a new share.' },
  transfer_not_found: { status: 404, title: 'The transfer does not exist or is gone', advice: 'It was never made, has expired, or was deleted.' },
  multipart_upload_not_found: { status: 404, title: 'The multipart upload does not exist', advice: 'Check the uploadId; start again with `POST /api/upload/multipart/init`.' },
  folder_not_found: { status: 404, title: 'The folder does not exist or has nothing ready', advice: 'Check the folder id, or wait until a file is ready.' },
  group_not_found: { status: 404, title: 'The agent group does not exist', advice: 'List your groups with `GET /api/agent/groups`.' },
  member_not_found: { status: 404, title: 'The agent is not a member of this group', advice: 'Read the group to see its members.' },
  permission_not_found: { status: 404, title: 'The standing permission does not exist', advice: 'List yours with `GET /api/agent/permissions`.' },
  key_not_found: { status: 404, title: 'The agent key does not exist', advice: 'List your keys with `GET /api/agent/keys`.' },
  route_not_found: { status: 404, title: 'There is nothing at this address', advice: 'See /docs for every endpoint.' },
  method_not_allowed: { status: 405, title: 'The method is not allowed at this address', advice: 'The `Allow` header lists the methods that are.' },
  grant_already_used: { status: 409, title: 'The grant was already used', advice: 'A grant works once. Ask for a new one and fetch again.' },
  agent_already_member: { status: 409, title: 'The agent is already a member', advice: 'Nothing needs to be done.' },
  group_full: { status: 409, title: 'The group has no room for another member', advice: 'Remove a member first, or make another group.' },
  operation_in_progress: { status: 409, title: 'The same operation is still running', retryable: true, advice: 'Send the same request again after a moment to get its answer.' },
  upload_state_conflict: { status: 409, title: 'The upload is not in a state that allows this', advice: 'Read `GET /api/upload/multipart/status` to see its state.' },
  upload_offset_mismatch: { status: 409, title: 'The upload offset does not match', advice: 'Ask for the current offset with HEAD and go on from there.' },
  plan_already_used: { status: 409, title: 'The plan already completed another transfer', advice: 'A plan completes one transfer. Ask for a new plan.' },
  agent_id_taken: { status: 409, title: 'The agent id belongs to another owner', advice: 'Choose another agentId, or leave it out to have one made.' },
  password_not_set: { status: 409, title: 'The account has no password', advice: 'It signs in at the OpenID Connect provider; change the password there.' },
  owner_email_taken: { status: 409, title: 'An owner with this e-mail exists already', advice: 'Choose another e-mail address.' },
  share_use_limit_exceeded: { status: 410, title: 'All uses of this share are spent', advice: 'Ask the sender for a new share.' },
  transfer_surface_retired: { status: 410, title: 'This upload surface is retired', advice: 'Use a planned upload: `POST /api/transfer-plan`, then send the bytes to the `upload.url` of its answer. See /docs/planned-upload.' },
  upload_expired: { status: 410, title: 'The upload has expired', advice: 'Start a new upload.' },
  request_timed_out: { status: 408, title: 'The request did not arrive in time', retryable: true, advice: 'Send the headers of a request without long pauses.' },
  length_required: { status: 411, title: 'Content-Length is required', advice: 'Send the size of the body in `Content-Length`.' },
  precondition_failed: { status: 412, title: 'A precondition of the request does not hold', advice: 'The validator in If-Match or If-Unmodified-Since is not the current one.' },
  payload_too_large: { status: 413, title: 'The body is larger than allowed', advice: 'The plan shows the limits in `capacity`.' },
  unsupported_media_type: { status: 415, title: 'The content type is not accepted here', advice: 'Send JSON bodies as `application/json`.' },
  range_not_satisfiable: { status: 416, title: 'The range lies outside of the transfer', advice: '`Content-Range` shows the size.' },
  invalid_request: { status: 400, title: 'The request is not valid', advice: '`errors` names each field and what is wrong with it.' },
  import_url_blocked: { status: 400, title: 'The URL may not be imported', advice: 'Only public http and https addresses are fetched.' },
  share_id_required: { status: 400, title: 'share_id is required', advice: 'Fetch open shares with the `downloadUrl` of the upload response, which carries `share_id`.' },
  digest_mismatch: { status: 400, title: 'The bytes do not match their digest', advice: 'Nothing was stored. Send the bytes again.' },
  part_size_mismatch: { status: 400, title: 'The part does not have the planned size', advice: 'Every part but the last has exactly `partSize` bytes.' },
  invalid_cursor: { status: 400, title: 'The cursor is not valid', advice: 'Use `nextCursor` of the last page unchanged, with the same filters.' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key was used for another request', advice: 'Use a new key for a new request.' },
  headers_too_large: { status: 431, title: 'The request headers are too large', advice: 'All headers together must stay under 64 KiB.' },
  rate_limited: { status: 429, title: 'Too many requests', retryable: true, advice: 'Wait for the seconds in `Retry-After`.' },
  internal: { status: 500, title: 'Something went wrong on our side', retryable: true, advice: 'Send the request again; report the `requestId` if it keeps failing.' },
  oidc_provider_failed: { status: 502, title: 'The OpenID Connect provider failed', retryable: true, advice: 'Begin again at `/api/owner/oidc/start` after a moment.' },
  import_upstream_failed: { status: 502, title: 'The URL could not be fetched', retryable: true, advice: 'The other server failed or answered with an error.' },
  service_unavailable: { status: 503, title: 'The service is not available at the moment', retryable: true, advice: 'Send the same request again after the seconds in `Retry-After`.' },
  overloaded: { status: 503, title: 'The service is overloaded', retryable: true, advice: 'Send the same request again after the seconds in `Retry-After`.' },
  import_timed_out: { status: 504, title: 'The URL took too long to answer', retryable: true, advice: 'Try again, or store the file with a planned upload.' },
  deadline_exceeded: { status: 504, title: 'The request took too long', retryable: true, advice: 'The outcome is unknown: send the same request with the same Idempotency-Key again.' },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof table;

export const errorTable: Readonly<Record<ErrorCode, ErrorEntry>> = table;

export const errorCodes = Object.keys(table) as ErrorCode[];

/** One bad field of a request: `path` in dots as in the body, `message` for a person. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
}

/** What may cross to the caller beside the code. Nothing secret belongs here. */
export interface FailureDetails {
  /** One sentence about this occurrence. */
  readonly detail?: string;
  readonly errors?: readonly FieldError[];
  /** Seconds after which a retry makes sense. */
  readonly retryAfter?: number;
  /** Where to go instead; the retired surfaces use it. */
  readonly see?: Readonly<Record<string, string>>;
  /** The size in bytes that a refused range did not fit. */
  readonly size?: number;
}

/** An expected failure with a code of the table. Thrown through `fail`, turned into an answer at the edge. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: ErrorCode;
  readonly details: FailureDetails;

  constructor(code: ErrorCode, details: FailureDetails = {}, cause?: unknown) {
    super(details.detail ?? table[code].title, { cause });
    this.code = code;
    this.details = details;
  }
}

/** Makes the failure to throw: `throw fail('grant_already_used')`. */
export function fail(code: ErrorCode, details?: FailureDetails, cause?: unknown): Failure {
  return new Failure(code, details, cause);
}

/** Makes an `invalid_request` that names one field. */
export function failField(path: string, message: string): Failure {
  return fail('invalid_request', { detail: `${path}: ${message}`, errors: [{ path, message }] });
}

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(table, text);
}

/** The code that an error has as an answer. */
export function errorCodeOf(error: unknown): ErrorCode {
  return error instanceof Failure ? error.code : 'internal';
}
