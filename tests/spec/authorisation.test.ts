/** Who may do what: every route, for everybody who may come to a resource of an owner (interface chapter: Authentication). */
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { callers, makeCast, type CallerName, type Cast } from '../support/cast.ts';
import { sharedExchange, type Answer, type Request } from '../support/exchange.ts';
import { absent, idsOf, lookAt, marker, targetsOf, type Target, type Targets } from '../support/targets.ts';

const exchange = sharedExchange();
const { call, must } = exchange;

/** What cells say. `ok`: let through. `none`: let through, to a list without the resource. All others are refusals. */
const codes: Readonly<Record<string, string>> = {
  'agent?': 'agent_auth_required', 'owner?': 'owner_auth_required', 'delete?': 'delete_token_required',
  'grant?': 'grant_required', 'plan?': 'plan_required', 'pass?': 'passcode_required',
  'noAgent': 'invalid_agent_credential', 'noOwner': 'invalid_owner_credential',
  'noGrant': 'invalid_grant', 'noPlan': 'plan_mismatch', 'noDelete': 'invalid_delete_token', 'noPass': 'invalid_passcode',
  'notYou': 'agent_not_allowed_for_share', 'not': 'forbidden', 'bad': 'invalid_request',
  'folder': 'folder_not_found', 'share': 'share_not_found_or_expired', 'transfer': 'transfer_not_found', 'upload': 'multipart_upload_not_found', 'lane': 'upload_state_conflict',
  'group': 'group_not_found', 'perm': 'permission_not_found', 'key': 'key_not_found', 'retired': 'transfer_surface_retired', 'taken': 'agent_id_taken', 'wrong': 'invalid_password', 'route': 'route_not_found',
};
const nameOf = Object.fromEntries(Object.entries(codes).map(([name, code]) => [code, name]));

/**
 * A row a route, and where it matters a row a kind of resource behind the colon. A star: the refusal differs from the one for
 * an id that was never given out, so it tells that the resource exists. The interface names these codes; groups, keys, permissions and the shares
 * that one may not change are as good as absent to everybody else.
 */
const table = `
to                                                          | nobody  | other    | theirs   | wrong    | named    | owner   | token   | ended   | revoked | garbage | proof
GET /api/share/{shareId}: open                              | ok      | noAgent  | ok       | ok       | ok       | noAgent | ok      | noAgent | noAgent | noAgent | ok
GET /api/share/{shareId}: agent                             | agent?* | noAgent  | notYou*  | notYou*  | ok       | noAgent | ok      | noAgent | noAgent | noAgent | agent?*
GET /api/share/{shareId}: passcode                          | ok      | noAgent  | ok       | ok       | ok       | noAgent | ok      | noAgent | noAgent | noAgent | ok
PATCH /api/share/{shareId}: of an owner                     | owner?  | share    | share    | share    | share    | ok      | noAgent | noOwner | noAgent | noAgent | owner?
PATCH /api/share/{shareId}: of an agent                     | owner?  | share    | share    | share    | ok       | ok      | noAgent | noOwner | noAgent | noAgent | owner?
DELETE /api/share/{shareId}: of an owner                    | owner?  | share    | share    | share    | share    | ok      | noAgent | noOwner | noAgent | noAgent | owner?
DELETE /api/share/{shareId}: of an agent                    | owner?  | share    | share    | share    | ok       | ok      | noAgent | noOwner | noAgent | noAgent | owner?
GET /api/shares                                             | owner?  | none     | none     | none     | ok       | ok      | noAgent | noOwner | noAgent | noAgent | owner?
POST /api/agent/grants: agent                               | agent?  | noAgent  | notYou*  | notYou*  | ok       | noAgent | noAgent | noAgent | noAgent | noAgent | agent?
POST /api/agent/grants: open                                | agent?  | noAgent  | bad*     | bad*     | bad*     | noAgent | noAgent | noAgent | noAgent | noAgent | agent?
POST /api/agent/auth                                        | agent?  | noAgent  | ok       | ok       | ok       | noAgent | noAgent | noAgent | noAgent | noAgent | agent?
POST /api/agent/keys: of a new agent                        | owner?  | ok       | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
POST /api/agent/keys: of the owner's agent                  | owner?  | taken*   | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
GET /api/agent/keys                                         | owner?  | none     | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
DELETE /api/agent/keys/{keyId}                              | owner?  | key      | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
POST /api/agent/groups                                      | owner?  | ok       | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
GET /api/agent/groups                                       | owner?  | none     | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
PATCH /api/agent/groups/{groupId}                           | owner?  | group    | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
DELETE /api/agent/groups/{groupId}                          | owner?  | group    | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
POST /api/agent/groups/{groupId}/members                    | owner?  | group    | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
DELETE /api/agent/groups/{groupId}/members/{agentId}        | owner?  | group    | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
POST /api/agent/permissions: from a new agent               | owner?  | bad      | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
GET /api/agent/permissions                                  | owner?  | none     | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
DELETE /api/agent/permissions/{permissionId}                | owner?  | perm     | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
GET /api/audit                                              | owner?  | none     | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
POST /api/owner/accounts                                    | owner?  | not      | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
POST /api/owner/session: a wrong password                   | noOwner | noOwner  | noOwner  | noOwner  | noOwner  | noOwner | noOwner | noOwner | noOwner | noOwner | noOwner
GET /api/owner/session                                      | owner?  | ok       | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
DELETE /api/owner/session                                   | owner?  | ok       | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
DELETE /api/owner/sessions                                  | owner?  | ok       | noOwner  | noOwner  | noOwner  | ok      | noOwner | noOwner | noOwner | noOwner | owner?
POST /api/owner/password: a wrong one                       | owner?  | wrong    | noOwner  | noOwner  | noOwner  | wrong   | noOwner | noOwner | noOwner | noOwner | owner?
GET /api/owner/oidc/start: no provider                      | route   | route    | route    | route    | route    | route   | route   | route   | route   | route   | route
GET /api/owner/oidc/callback: no provider                   | route   | route    | route    | route    | route    | route   | route   | route   | route   | route   | route
POST /api/transfer-plan                                     | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | ok
POST /api/transfer-plan: with the owner's group             | group   | group    | group    | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | group
POST /api/import-url                                        | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | ok
POST /api/import-url: with the owner's group                | group   | group    | group    | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | group
PUT /api/lane/single/{planId}: without its plan             | plan?   | plan?    | plan?    | plan?    | plan?    | plan?   | plan?   | plan?   | plan?   | plan?   | noPlan
PUT /api/lane/single/{planId}: with its plan                | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noPlan
POST /api/upload/multipart/init                             | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noPlan
POST /api/upload/multipart/init: with the owner's group     | group   | group    | group    | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noPlan
POST /api/upload/multipart/part: of an owner                | owner?* | not*     | not*     | not*     | not*     | ok      | noAgent | noOwner | noAgent | noAgent | noPlan*
GET /api/upload/multipart/status: of an owner               | owner?* | not*     | not*     | not*     | not*     | ok      | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/complete: of an owner            | owner?* | not*     | not*     | not*     | not*     | ok      | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/abort: of an owner               | owner?* | not*     | not*     | not*     | not*     | ok      | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/direct-urls: of an owner         | owner?* | not*     | not*     | not*     | not*     | lane*   | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/part: of an agent                | agent?* | not*     | not*     | not*     | ok       | not*    | noAgent | noOwner | noAgent | noAgent | noPlan*
GET /api/upload/multipart/status: of an agent               | agent?* | not*     | not*     | not*     | ok       | not*    | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/complete: of an agent            | agent?* | not*     | not*     | not*     | ok       | not*    | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/abort: of an agent               | agent?* | not*     | not*     | not*     | ok       | not*    | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/direct-urls: of an agent         | agent?* | not*     | not*     | not*     | lane*    | not*    | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/part: planned                    | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noPlan*
GET /api/upload/multipart/status: planned                   | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/complete: planned                | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/abort: planned                   | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/upload/multipart/direct-urls: planned             | lane*   | lane*    | lane*    | lane*    | lane*    | lane*   | noAgent | noOwner | noAgent | noAgent | noPlan*
GET /api/upload/multipart/status: planned, without its plan | plan?*  | plan?*   | plan?*   | plan?*   | plan?*   | plan?*  | noAgent | noOwner | noAgent | noAgent | noPlan*
POST /api/pipe                                              | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noPlan
POST /api/pipe: with the owner's group                      | group   | group    | group    | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noPlan
PUT /api/pipe/{pipeId}: of an owner                         | delete? | delete?* | delete?* | delete?* | delete?* | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
PUT /api/pipe/{pipeId}: of an agent                         | delete? | delete?* | delete?* | delete?* | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
PUT /api/pipe/{pipeId}: with its token                      | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noDelete
GET /api/dl/{id}: open                                      | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noGrant
GET /api/dl/{id}: agent                                     | grant?* | grant?*  | grant?*  | grant?*  | grant?*  | grant?* | grant?* | grant?* | grant?* | grant?* | noGrant
GET /api/dl/{id}: agent, without share_id                   | grant?* | grant?*  | grant?*  | grant?*  | grant?*  | grant?* | grant?* | grant?* | grant?* | grant?* | noGrant
GET /api/dl/{id}: agent, with its grant                     | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noGrant
GET /api/dl/{id}: passcode                                  | pass?*  | pass?*   | pass?*   | pass?*   | pass?*   | pass?*  | pass?*  | pass?*  | pass?*  | pass?*  | noGrant
HEAD /api/dl/{id}                                           | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
DELETE /api/dl/{id}: of an owner                            | delete? | delete?* | delete?* | delete?* | delete?* | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
DELETE /api/dl/{id}: of an agent                            | delete? | delete?* | delete?* | delete?* | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
DELETE /api/dl/{id}: with its token                         | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noDelete
POST /api/folder                                            | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | ok
POST /api/folder: with the owner's group                    | group   | group    | group    | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | group
POST /api/folder/{folderId}/files: of an owner              | delete? | delete?* | delete?* | delete?* | delete?* | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
POST /api/folder/{folderId}/files: of an agent              | delete? | delete?* | delete?* | delete?* | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
POST /api/folder/{folderId}/files: with its token           | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noDelete
POST /api/folder/{folderId}/upload-complete: of an owner    | delete? | delete?* | delete?* | delete?* | delete?* | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
POST /api/folder/{folderId}/upload-complete: of an agent    | delete? | delete?* | delete?* | delete?* | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
POST /api/folder/{folderId}/upload-complete: with its token | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noDelete
POST /api/folder/{folderId}/upload-direct-complete: of an owner | delete? | delete?* | delete?* | delete?* | delete?* | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
POST /api/folder/{folderId}/upload-direct-complete: of an agent | delete? | delete?* | delete?* | delete?* | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
POST /api/folder/{folderId}/upload-direct-complete: with its token | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noDelete
GET /api/folder/{folderId}/upload-status: of an owner       | delete? | delete?* | delete?* | delete?* | delete?* | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
GET /api/folder/{folderId}/upload-status: of an agent       | delete? | delete?* | delete?* | delete?* | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
GET /api/folder/{folderId}/upload-status: with its token    | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noDelete
GET /api/folder/{folderId}: of an owner                     | delete? | delete?* | delete?* | delete?* | delete?* | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
GET /api/folder/{folderId}: of an agent                     | delete? | delete?* | delete?* | delete?* | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
GET /api/folder/{folderId}: with its token                  | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noDelete
GET /api/folder/{folderId}: by its open share               | ok      | noAgent  | ok       | ok       | ok       | noAgent | ok      | noAgent | noAgent | noAgent | ok
GET /api/folder/{folderId}: by its agent share              | agent?* | noAgent  | notYou*  | notYou*  | ok       | noAgent | ok      | noAgent | noAgent | noAgent | agent?*
GET /api/folder/{folderId}/zip: open                        | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noGrant*
GET /api/folder/{folderId}/zip: agent                       | grant?* | grant?*  | grant?*  | grant?*  | grant?*  | grant?* | grant?* | grant?* | grant?* | grant?* | noGrant*
GET /api/folder/{folderId}/zip: agent, with its grant       | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noGrant*
GET /api/dl/{id}: a file of an open folder                  | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | noGrant*
GET /api/dl/{id}: a file of an agent folder                 | grant?* | grant?*  | grant?*  | grant?*  | grant?*  | grant?* | grant?* | grant?* | grant?* | grant?* | noGrant*
DELETE /api/dl/{id}: a file of a folder                     | delete? | delete?* | delete?* | delete?* | ok       | ok      | noAgent | noOwner | noAgent | noAgent | noDelete
POST /api/upload                                            | retired | retired  | retired  | retired  | retired  | retired | retired | retired | retired | retired | retired
POST /api/tus                                               | retired | retired  | retired  | retired  | retired  | retired | retired | retired | retired | retired | retired
POST /mcp: upload_text                                      | ok      | ok       | ok       | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | ok
POST /mcp: upload_json with the owner's group               | group   | group    | group    | ok       | ok       | ok      | noAgent | noOwner | noAgent | noAgent | group
POST /mcp: resolve_share of an open share                   | ok      | noAgent  | ok       | ok       | ok       | noAgent | ok      | noAgent | noAgent | noAgent | ok
POST /mcp: resolve_share of an agent share                  | agent?* | noAgent  | notYou*  | notYou*  | ok       | noAgent | ok      | noAgent | noAgent | noAgent | agent?*
POST /mcp: request_grant                                    | agent?  | noAgent  | notYou*  | notYou*  | ok       | noAgent | noAgent | noAgent | noAgent | noAgent | agent?
POST /mcp: download_link of an open share                   | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
POST /mcp: download_link of an agent share                  | grant?* | grant?*  | grant?*  | grant?*  | grant?*  | grant?* | grant?* | grant?* | grant?* | grant?* | grant?*
POST /mcp: download_link with its grant                     | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
POST /mcp: fetch_share of an open share                     | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
POST /mcp: fetch_share of an agent share                    | agent?* | noAgent* | notYou*  | notYou*  | ok       | noAgent* | noAgent* | noAgent* | noAgent* | noAgent* | agent?*
POST /mcp: fetch_share with its grant                       | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
POST /mcp: fetch_share of a passcode share                  | pass?*  | pass?*   | pass?*   | pass?*   | pass?*   | pass?*  | pass?*  | pass?*  | pass?*  | pass?*  | pass?*
GET /s/{shareId}                                            | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
GET /.well-known/jwks.json                                  | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
GET /healthz                                                | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
GET /readyz                                                 | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
GET /openapi.json                                           | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
GET /docs                                                   | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
GET /problems/{code}                                        | ok      | ok       | ok       | ok       | ok       | ok      | ok      | ok      | ok      | ok      | ok
`;
const [[, ...columns], ...lines] = table.trim().split('\n').map((line) => line.split('|').map((cell) => cell.trim())) as [[string, ...CallerName[]], ...[string, ...string[]][]];
const rows = new Map(lines.map(([name, ...cells]) => [name, Object.fromEntries(columns.map((caller, index) => [caller, cells[index]!]))]));

interface Way {
  readonly target: keyof Targets;
  readonly ask: (target: Target) => [path: string, request?: Request];
  /** Answers what the caller has, which may be nothing. */
  readonly lists?: true;
  /** Ends sessions: whoever comes has one of their own. */
  readonly endsSession?: true;
  /** Where the answer to the request is inside of the answer to HTTP. */
  readonly read?: (answer: Answer) => Answer;
  /** May be tried a few times only: everybody has a resource of their own, refused or not. */
  readonly limited?: true;
}

const post = (json: object): Request => ({ json });
const withPlan = ({ plan }: Target): Record<string, string> => ({ 'x-transfer-plan': plan! });
const uploadWays = (target: keyof Targets): readonly [string, Way][] => {
  const headers = (made: Target): Pick<Request, 'headers'> => (made['plan'] && target === 'plannedUpload' ? { headers: withPlan(made) } : {});
  const kind = { upload: 'of an owner', uploadByAgent: 'of an agent', plannedUpload: 'planned' }[target as string]!;
  return [
    [`POST /api/upload/multipart/part: ${kind}`, { target, ask: (made) => [`/api/upload/multipart/part?uploadId=${made['uploadId']}&partNumber=1`, { body: 'part', ...headers(made) }] }],
    [`GET /api/upload/multipart/status: ${kind}`, { target, ask: (made) => [`/api/upload/multipart/status?uploadId=${made['uploadId']}`, headers(made)] }],
    [`POST /api/upload/multipart/complete: ${kind}`, { target, ask: (made) => ['/api/upload/multipart/complete', { ...post({ uploadId: made['uploadId'] }), ...headers(made) }] }],
    [`POST /api/upload/multipart/direct-urls: ${kind}`, { target, ask: (made) => ['/api/upload/multipart/direct-urls', { ...post({ uploadId: made['uploadId'], partNumbers: [1] }), ...headers(made) }] }],
    [`POST /api/upload/multipart/abort: ${kind}`, { target, ask: (made) => ['/api/upload/multipart/abort', { ...post({ uploadId: made['uploadId'] }), ...headers(made) }] }],
  ];
};
/** A refusal by a tool, as REST tells the same. */
function readOutcome(answer: Answer): Answer {
  const { isError, content } = answer.json.result;
  if (!isError) return answer;
  const json = JSON.parse(content[0].text) as { status: number };
  return { ...answer, status: json.status, json };
}
const tool = (name: string, target: keyof Targets, args: (made: Target) => object = ({ shareId }) => ({ shareId })): Way => ({
  target, ask: (made) => ['/mcp', post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args(made) } })], read: readOutcome,
});
/** What a folder's sender may do: the owner, the agent that made it, and whoever has its delete token. */
const folderWays = (route: string, ask: Way['ask']): readonly [string, Way][] => [
  [`${route}: of an owner`, { target: 'folder', ask }],
  [`${route}: of an agent`, { target: 'folderByAgent', ask }],
  [`${route}: with its token`, { target: 'folder', ask: (made) => {
    const [path, request] = ask(made);
    return [path, { ...request, headers: { 'x-delete-token': made['deleteToken']! } }];
  } }],
];
const page = (path: string): Way => ({ target: 'nothing', ask: () => [path] });

const ways = new Map<string, Way>([
  ['GET /api/share/{shareId}: open', { target: 'openShare', ask: ({ shareId }) => [`/api/share/${shareId}`] }],
  ['GET /api/share/{shareId}: agent', { target: 'agentShare', ask: ({ shareId }) => [`/api/share/${shareId}`] }],
  ['GET /api/share/{shareId}: passcode', { target: 'passcodeShare', ask: ({ shareId }) => [`/api/share/${shareId}`] }],
  ['PATCH /api/share/{shareId}: of an owner', { target: 'agentShare', ask: ({ shareId }) => [`/api/share/${shareId}`, { method: 'PATCH', json: { maxUses: 7 } }] }],
  ['PATCH /api/share/{shareId}: of an agent', { target: 'shareByAgent', ask: ({ shareId }) => [`/api/share/${shareId}`, { method: 'PATCH', json: { maxUses: 7 } }] }],
  ['DELETE /api/share/{shareId}: of an owner', { target: 'agentShare', ask: ({ shareId }) => [`/api/share/${shareId}`, { method: 'DELETE' }] }],
  ['DELETE /api/share/{shareId}: of an agent', { target: 'shareByAgent', ask: ({ shareId }) => [`/api/share/${shareId}`, { method: 'DELETE' }] }],
  ['GET /api/shares', { target: 'agentShare', ask: () => ['/api/shares'], lists: true }],
  ['POST /api/agent/grants: agent', { target: 'agentShare', ask: ({ shareId }) => ['/api/agent/grants', post({ shareId })] }],
  ['POST /api/agent/grants: open', { target: 'openShare', ask: ({ shareId }) => ['/api/agent/grants', post({ shareId })] }],
  ['POST /api/agent/auth', { target: 'nothing', ask: () => ['/api/agent/auth', { method: 'POST' }] }],
  ['POST /api/agent/keys: of a new agent', { target: 'nothing', ask: () => ['/api/agent/keys', post({})] }],
  ['POST /api/agent/keys: of the owner\'s agent', { target: 'key', ask: ({ agentId }) => ['/api/agent/keys', post({ agentId })] }],
  ['GET /api/agent/keys', { target: 'key', ask: () => ['/api/agent/keys'], lists: true }],
  ['DELETE /api/agent/keys/{keyId}', { target: 'key', ask: ({ keyId }) => [`/api/agent/keys/${keyId}`, { method: 'DELETE' }] }],
  ['POST /api/agent/groups', { target: 'nothing', ask: ({ name }) => ['/api/agent/groups', post({ name })] }],
  ['GET /api/agent/groups', { target: 'group', ask: () => ['/api/agent/groups'], lists: true }],
  ['PATCH /api/agent/groups/{groupId}', { target: 'group', ask: ({ groupId }) => [`/api/agent/groups/${groupId}`, { method: 'PATCH', json: { name: 'changed' } }] }],
  ['DELETE /api/agent/groups/{groupId}', { target: 'group', ask: ({ groupId }) => [`/api/agent/groups/${groupId}`, { method: 'DELETE' }] }],
  ['POST /api/agent/groups/{groupId}/members', { target: 'group', ask: ({ groupId }) => [`/api/agent/groups/${groupId}/members`, post({ agentId: 'joins' })] }],
  ['DELETE /api/agent/groups/{groupId}/members/{agentId}', { target: 'group', ask: ({ groupId }) => [`/api/agent/groups/${groupId}/members/member`, { method: 'DELETE' }] }],
  ['POST /api/agent/permissions: from a new agent', { target: 'key', ask: ({ agentId }) => ['/api/agent/permissions', post({ fromAgentId: agentId, toAgentId: 'b', scopes: ['grant.issue'] })] }],
  ['GET /api/agent/permissions', { target: 'permission', ask: () => ['/api/agent/permissions'], lists: true }],
  ['DELETE /api/agent/permissions/{permissionId}', { target: 'permission', ask: ({ permissionId }) => [`/api/agent/permissions/${permissionId}`, { method: 'DELETE' }] }],
  ['GET /api/audit', { target: 'recorded', ask: () => ['/api/audit?limit=100'], lists: true }],
  ['POST /api/owner/accounts', { target: 'nothing', ask: ({ name }) => ['/api/owner/accounts', post({ email: `${name}@example.com`, password: 'long enough to hash' })] }],
  ['POST /api/owner/session: a wrong password', { target: 'account', ask: ({ email }) => ['/api/owner/session', post({ email, password: 'not this one' })], limited: true }],
  ['GET /api/owner/session', { target: 'nothing', ask: () => ['/api/owner/session'] }],
  ['DELETE /api/owner/session', { target: 'nothing', ask: () => ['/api/owner/session', { method: 'DELETE' }], endsSession: true }],
  ['DELETE /api/owner/sessions', { target: 'nothing', ask: () => ['/api/owner/sessions', { method: 'DELETE' }], endsSession: true }],
  ['POST /api/owner/password: a wrong one', { target: 'nothing', ask: () => ['/api/owner/password', post({ currentPassword: 'not this one', newPassword: 'long enough to hash' })], endsSession: true }],
  ['GET /api/owner/oidc/start: no provider', { target: 'nothing', ask: () => ['/api/owner/oidc/start'] }],
  ['GET /api/owner/oidc/callback: no provider', { target: 'nothing', ask: () => ['/api/owner/oidc/callback'] }],
  ['POST /api/transfer-plan', { target: 'nothing', ask: () => ['/api/transfer-plan', post({ filename: 'a' })] }],
  ['POST /api/transfer-plan: with the owner\'s group', { target: 'group', ask: ({ groupId }) => ['/api/transfer-plan', post({ filename: 'a', agentGroupId: groupId })] }],
  ['POST /api/import-url', { target: 'nothing', ask: () => ['/api/import-url', post({ url: inject('sourceUrl') })] }],
  ['POST /api/import-url: with the owner\'s group', { target: 'group', ask: ({ groupId }) => ['/api/import-url', post({ url: inject('sourceUrl'), agentGroupId: groupId })] }],
  ['PUT /api/lane/single/{planId}: without its plan', { target: 'plan', ask: ({ planId }) => [`/api/lane/single/${planId}`, { method: 'PUT', body: 'some bytes' }] }],
  ['PUT /api/lane/single/{planId}: with its plan', { target: 'plan', ask: (made) => [`/api/lane/single/${made['planId']}`, { method: 'PUT', body: 'some bytes', headers: withPlan(made) }] }],
  ['POST /api/upload/multipart/init', { target: 'nothing', ask: () => ['/api/upload/multipart/init', post({ filename: 'a', size: 4 })] }],
  ['POST /api/upload/multipart/init: with the owner\'s group', { target: 'group', ask: ({ groupId }) => ['/api/upload/multipart/init', post({ filename: 'a', size: 4, agentGroupId: groupId })] }],
  ...uploadWays('upload'), ...uploadWays('uploadByAgent'), ...uploadWays('plannedUpload'),
  ['GET /api/upload/multipart/status: planned, without its plan', { target: 'plannedUpload', ask: ({ uploadId }) => [`/api/upload/multipart/status?uploadId=${uploadId}`] }],
  ['POST /api/pipe', { target: 'nothing', ask: () => ['/api/pipe', post({})] }],
  ['POST /api/pipe: with the owner\'s group', { target: 'group', ask: ({ groupId }) => ['/api/pipe', post({ agentGroupId: groupId })] }],
  ['PUT /api/pipe/{pipeId}: of an owner', { target: 'pipe', ask: ({ pipeId }) => [`/api/pipe/${pipeId}`, { method: 'PUT', body: 'bytes' }] }],
  ['PUT /api/pipe/{pipeId}: of an agent', { target: 'pipeByAgent', ask: ({ pipeId }) => [`/api/pipe/${pipeId}`, { method: 'PUT', body: 'bytes' }] }],
  ['PUT /api/pipe/{pipeId}: with its token', { target: 'pipe', ask: ({ pipeId, deleteToken }) => [`/api/pipe/${pipeId}`, { method: 'PUT', body: 'bytes', headers: { 'x-delete-token': deleteToken! } }] }],
  ['GET /api/dl/{id}: open', { target: 'openShare', ask: ({ id, shareId }) => [`/api/dl/${id}?share_id=${shareId}`] }],
  ['GET /api/dl/{id}: agent', { target: 'agentShare', ask: ({ id, shareId }) => [`/api/dl/${id}?share_id=${shareId}`] }],
  ['GET /api/dl/{id}: agent, without share_id', { target: 'agentShare', ask: ({ id }) => [`/api/dl/${id}`] }],
  ['GET /api/dl/{id}: agent, with its grant', { target: 'granted', ask: ({ id, grant }) => [`/api/dl/${id}`, { headers: { 'x-access-grant': grant! } }] }],
  ['GET /api/dl/{id}: passcode', { target: 'passcodeShare', ask: ({ id, shareId }) => [`/api/dl/${id}?share_id=${shareId}`] }],
  ['HEAD /api/dl/{id}', { target: 'agentShare', ask: ({ id }) => [`/api/dl/${id}`, { method: 'HEAD' }] }],
  ['DELETE /api/dl/{id}: of an owner', { target: 'transfer', ask: ({ id }) => [`/api/dl/${id}`, { method: 'DELETE' }] }],
  ['DELETE /api/dl/{id}: of an agent', { target: 'transferByAgent', ask: ({ id }) => [`/api/dl/${id}`, { method: 'DELETE' }] }],
  ['DELETE /api/dl/{id}: with its token', { target: 'transfer', ask: ({ id, deleteToken }) => [`/api/dl/${id}`, { method: 'DELETE', headers: { 'x-delete-token': deleteToken! } }] }],
  ['POST /api/folder', { target: 'nothing', ask: () => ['/api/folder', post({ name: 'a' })] }],
  ['POST /api/folder: with the owner\'s group', { target: 'group', ask: ({ groupId }) => ['/api/folder', post({ name: 'a', agentGroupId: groupId })] }],
  ...folderWays('POST /api/folder/{folderId}/files', ({ folderId }) => [`/api/folder/${folderId}/files`, post({ path: 'another.txt', size: 1 })]),
  ...folderWays('POST /api/folder/{folderId}/upload-complete', ({ folderId, fileId, uploadId, operationId }) => [`/api/folder/${folderId}/upload-complete`, post({ fileId, uploadId, operationId })]),
  ...folderWays('POST /api/folder/{folderId}/upload-direct-complete', ({ folderId, fileId, uploadId, operationId }) => [`/api/folder/${folderId}/upload-direct-complete`, post({ fileId, uploadId, operationId })]),
  ...folderWays('GET /api/folder/{folderId}/upload-status', ({ folderId, operationId }) => [`/api/folder/${folderId}/upload-status?view=completion&operationId=${operationId}`]),
  ...folderWays('GET /api/folder/{folderId}', ({ folderId }) => [`/api/folder/${folderId}`]),
  ['GET /api/folder/{folderId}: by its open share', { target: 'folder', ask: ({ folderId, shareId }) => [`/api/folder/${folderId}?share_id=${shareId}`] }],
  ['GET /api/folder/{folderId}: by its agent share', { target: 'agentFolder', ask: ({ folderId, shareId }) => [`/api/folder/${folderId}?share_id=${shareId}`] }],
  ['GET /api/folder/{folderId}/zip: open', { target: 'folder', ask: ({ folderId, shareId }) => [`/api/folder/${folderId}/zip?share_id=${shareId}`] }],
  ['GET /api/folder/{folderId}/zip: agent', { target: 'agentFolder', ask: ({ folderId, shareId }) => [`/api/folder/${folderId}/zip?share_id=${shareId}`] }],
  ['GET /api/folder/{folderId}/zip: agent, with its grant', { target: 'grantedFolder', ask: ({ folderId, grant }) => [`/api/folder/${folderId}/zip`, { headers: { 'x-access-grant': grant! } }] }],
  ['GET /api/dl/{id}: a file of an open folder', { target: 'folder', ask: ({ fileId, shareId }) => [`/api/dl/${fileId}?share_id=${shareId}`] }],
  ['GET /api/dl/{id}: a file of an agent folder', { target: 'agentFolder', ask: ({ fileId, shareId }) => [`/api/dl/${fileId}?share_id=${shareId}`] }],
  ['DELETE /api/dl/{id}: a file of a folder', { target: 'folderByAgent', ask: ({ fileId }) => [`/api/dl/${fileId}`, { method: 'DELETE' }] }],
  ['POST /api/upload', { target: 'nothing', ask: () => ['/api/upload', post({})] }],
  ['POST /api/tus', { target: 'nothing', ask: () => ['/api/tus', post({})] }],
  ['POST /mcp: upload_text', tool('upload_text', 'nothing', ({ name }) => ({ text: name }))],
  ['POST /mcp: upload_json with the owner\'s group', tool('upload_json', 'group', ({ groupId }) => ({ value: 1, agentGroupId: groupId }))],
  ['POST /mcp: resolve_share of an open share', tool('resolve_share', 'openShare')],
  ['POST /mcp: resolve_share of an agent share', tool('resolve_share', 'agentShare')],
  ['POST /mcp: request_grant', tool('request_grant', 'agentShare')],
  ['POST /mcp: download_link of an open share', tool('download_link', 'openShare')],
  ['POST /mcp: download_link of an agent share', tool('download_link', 'agentShare')],
  ['POST /mcp: download_link with its grant', tool('download_link', 'granted', ({ shareId, grant }) => ({ shareId, accessGrant: grant }))],
  ['POST /mcp: fetch_share of an open share', tool('fetch_share', 'openShare')],
  ['POST /mcp: fetch_share of an agent share', tool('fetch_share', 'agentShare')],
  ['POST /mcp: fetch_share with its grant', tool('fetch_share', 'granted', ({ shareId, grant }) => ({ shareId, accessGrant: grant }))],
  ['POST /mcp: fetch_share of a passcode share', tool('fetch_share', 'passcodeShare')],
  ['GET /s/{shareId}', { target: 'openShare', ask: ({ shareId }) => [`/s/${shareId}`] }],
  ...['GET /.well-known/jwks.json', 'GET /healthz', 'GET /readyz', 'GET /openapi.json', 'GET /docs'].map((name) => [name, page(name.slice(4))] as [string, Way]),
  ['GET /problems/{code}', page('/problems/forbidden')],
]);

let cast: Cast;
let targets: Targets;
beforeAll(async () => {
  cast = await makeCast(exchange);
  targets = targetsOf(exchange, cast);
});

/** The answer without what differs from request to request. */
function essence({ status, headers, json }: Answer): unknown {
  const { requestId: _request, instance: _path, ...told } = (json ?? {}) as Record<string, unknown>;
  return { status, told, type: headers.get('content-type'), authenticate: headers.get('www-authenticate'), allow: headers.get('allow') };
}

async function send({ ask, endsSession, read = (answer) => answer }: Way, target: Target, caller: CallerName): Promise<Answer> {
  const [path, request = {}] = ask(target);
  const theirs = endsSession ? await cast.standIn(caller) : cast.headersOf[caller];
  return read(await call(path, { ...request, headers: { ...request.headers, ...theirs } }));
}

/** What a caller meets, as a cell says it. */
async function meet(way: Way, target: Target, caller: CallerName): Promise<string> {
  const answer = await send(way, target, caller);
  // What is told: the path is the caller's own word.
  const told = answer.status < 400 ? answer.text : JSON.stringify(essence(answer));
  const shows = [marker, ...idsOf(target)].some((secret) => told.includes(secret));
  if (answer.status < 400) return way.lists && !shows ? 'none' : 'ok';
  if (shows) return `shows ${told}`;
  const never = await send(way, absent(target), caller);
  const tells = JSON.stringify(essence(answer)) === JSON.stringify(essence(never)) ? '' : '*';
  return `${nameOf[answer.json?.code as string] ?? `${answer.status} ${answer.text}`}${tells}`;
}

test('the table has a row for every route', async () => {
  const { paths } = (await must('/openapi.json')).json as { paths: Record<string, object> };
  const described = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`));
  const undescribed = ['GET /healthz', 'GET /readyz', 'GET /openapi.json', 'GET /docs', 'GET /s/{shareId}', 'GET /problems/{code}'];
  expect([...new Set([...rows.keys()].map((name) => name.split(':')[0]!))].sort()).toEqual([...new Set([...described, ...undescribed])].sort());
  expect([...rows.keys()].sort()).toEqual([...ways.keys()].sort());
  expect(columns).toEqual(Object.keys(callers));
});

describe('everybody meets what the table says, and a refusal changes nothing', () => {
  test.each([...ways])('%s', async (name, way) => {
    const expected = rows.get(name)!;
    const refused = columns.filter((caller) => expected[caller] !== 'ok');
    const met: Record<string, string> = {};
    const target = await targets[way.target]();
    const before = await lookAt(exchange, cast, target);
    for (const caller of refused) met[caller] = await meet(way, way.limited ? await targets[way.target]() : target, caller);
    expect(await lookAt(exchange, cast, target)).toEqual(before);
    // What is let through may end the resource: each has one of its own.
    for (const caller of columns) met[caller] ??= await meet(way, await targets[way.target](), caller);
    expect(met).toEqual(expected);
  });
});
