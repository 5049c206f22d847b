/** The interface description, OpenAPI 3.1, made from the contracts and the few routes that have none. */
import type { Contract, CredentialKind, Named } from '../../shared/contract.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import { uploadResponse } from '../../shared/contracts/fields.ts';
import { pipes } from '../../shared/contracts/pipes.ts';
import { planHeader } from '../../shared/contracts/plans.ts';
import { errorTable, type ErrorCode } from '../../shared/errors.ts';
import type { Surfaces } from './legacy-surfaces.ts';
import { legacyOperations } from './openapi-legacy.ts';
import { everywhere, jsonSchema, operationKey, parameter, problemsOf, type Json } from './openapi-parts.ts';

/** Codes that every route with a JSON body can answer. */
const withBody: readonly ErrorCode[] = ['payload_too_large', 'unsupported_media_type'];

const schemes: Readonly<Record<CredentialKind, Json>> = {
  agent_key: { type: 'http', scheme: 'bearer', bearerFormat: 'agk_<keyId>.<secret>', description: 'Root agent key' },
  access_token: { type: 'http', scheme: 'bearer', bearerFormat: 'aat_<token>', description: 'Short-lived access token, accepted on resolve' },
  owner_session: { type: 'http', scheme: 'bearer', bearerFormat: 'aos_<token>', description: 'Owner session; a browser sends it as a cookie' },
};

const operations = 'Operations';

/** Chapters of the interface in their order, each with the paths that belong to it. */
const chapters: readonly [RegExp, string][] = [
  [/^\/api\/(transfer-plan|import-url|lane|upload(?!\/multipart)|tus)/, 'Transfer plan and creation'],
  [/^\/api\/upload\/multipart/, 'Native multipart lane'],
  [/^\/mcp$/, 'Hosted MCP'],
  [/^\/api\/pipe/, 'Pipes'],
  [/^\/api\/folder/, 'Folders'],
  [/^\/api\/(share|agent\/(auth|grants))/, 'Share, agent auth, grants'],
  [/^\/api\/agent\/groups/, 'Agent groups'],
  [/^\/api\/agent\/permissions/, 'Standing permissions'],
  [/^\/api\/dl/, 'Transfer bytes'],
  [/^\/api\/(owner|agent)/, 'Owners and agent keys'],
  [/^\/api\/audit/, 'Audit'],
];

export function describeInterface({ baseUrl, version, legacy }: { baseUrl: string; version: string; legacy: Surfaces }): Json {
  const paths: Record<string, Json> = {};
  const add = (path: string, method: string, operation: Json) => { (paths[path] ??= {})[method.toLowerCase()] = operation; };
  for (const contract of Object.values(allContracts) as Named[]) {
    if (contract.http) add(contract.http.path, contract.http.method, operationOf(contract));
  }
  add('/api/lane/single/{planId}', 'put', singleLane);
  const fetched = paths['/api/dl/{id}']!['get'] as { responses: Json };
  fetched.responses = { ...fetched.responses, 206: { ...(fetched.responses['200'] as Json), description: 'The range that was asked for' }, 304: notModified };
  add('/api/dl/{id}', 'head', headTransfer(paths['/api/dl/{id}']!));
  add('/mcp', 'post', mcp());
  // Who may write is asked before the body, by a request of its own.
  paths['/api/pipe/{pipeId}']!['put'] = { ...(paths['/api/pipe/{pipeId}']!['put'] as Json), security: securityOf(pipes.openPipe) };
  for (const [path, method, operation] of legacyOperations(legacy)) add(path, method, operation);
  return {
    openapi: '3.1.0',
    info: { title: 'Asset exchange', version, description: 'A file and JSON exchange between agents: upload, resolve, grant, fetch and delete.' },
    servers: [{ url: baseUrl }],
    tags: [...chapters.map(([, name]) => name), operations].map((name) => ({ name })),
    paths,
    components: { securitySchemes: schemes, schemas: { Problem: problemSchema } },
  };
}

function operationOf(contract: Named): Json {
  const http = contract.http!;
  const fields = fieldsOf(contract);
  const parameters = [
    ...[...http.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => parameter('path', name!, fields[name!], true)),
    ...(http.query ?? []).map((name) => parameter('query', name, fields[name], isRequired(contract, name))),
    ...Object.entries(http.headers ?? {}).map(([field, name]) => parameter('header', name, fields[field], false)),
    ...(contract.idempotent ? [parameter('header', 'Idempotency-Key', operationKey, false)] : []),
  ];
  const body = requestBodyOf(contract, fields);
  return {
    operationId: contract.name,
    summary: contract.summary,
    tags: [chapterOf(http.path)],
    ...(contract.accepts.length > 0 && { security: securityOf(contract) }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: body }),
    responses: {
      [http.status]: successOf(contract),
      ...problemsOf([...contract.errors, ...(body ? withBody : []), ...everywhere]),
    },
  };
}

/** The JSON Schemas of the input's fields. */
function fieldsOf(contract: Contract): Record<string, Json> {
  const schema = jsonSchema(contract.input, 'input');
  return (schema['properties'] ?? {}) as Record<string, Json>;
}

function isRequired(contract: Contract, field: string): boolean {
  const { required = [] } = jsonSchema(contract.input, 'input') as { required?: string[] };
  return required.includes(field);
}

function requestBodyOf(contract: Named, fields: Record<string, Json>): Json | undefined {
  const http = contract.http!;
  if (http.requestType) return { required: true, content: { [http.requestType]: { schema: { type: 'string', format: 'binary' } } } };
  if (http.method === 'GET' || http.method === 'DELETE') return undefined;
  const elsewhere = new Set([...(http.query ?? []), ...Object.keys(http.headers ?? {}), ...[...http.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)]);
  const properties = Object.fromEntries(Object.entries(fields).filter(([name]) => !elsewhere.has(name)));
  if (contract.name === 'authenticateAgent') properties['agentKey'] = { type: 'string', description: 'The agent key, where it is not sent as Bearer' };
  if (contract.idempotent) properties['operationId'] = { ...operationKey, description: 'In place of Idempotency-Key' };
  const required = Object.keys(properties).filter((name) => isRequired(contract, name));
  const schema = { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false };
  return { required: http.body !== 'empty', content: { 'application/json': { schema } } };
}

function successOf(contract: Named): Json {
  const { responseType, otherTypes = [], status } = contract.http!;
  if (status >= 300) return { description: contract.summary, headers: { Location: { schema: { type: 'string', format: 'uri-reference' } } } };
  const content = responseType
    ? { [responseType]: { schema: { type: 'string', format: 'binary' } } }
    : { 'application/json': { schema: jsonSchema(contract.output, 'output') } };
  const others = Object.fromEntries(otherTypes.map((type) => [type, { schema: { type: 'string' } }]));
  return { description: contract.summary, content: { ...content, ...others } };
}

function securityOf(contract: Contract): Json[] {
  const accepted = contract.accepts.map((kind) => ({ [kind]: [] }));
  return contract.required ? accepted : [...accepted, {}];
}

function chapterOf(path: string): string {
  return chapters.find(([pattern]) => pattern.test(path))?.[1] ?? operations;
}

const problemSchema: Json = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'requestId', 'retryable'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { type: 'string', enum: Object.keys(errorTable) },
    requestId: { type: 'string' },
    retryable: { type: 'boolean' },
    errors: { type: 'array', items: { type: 'object', properties: { path: { type: 'string' }, message: { type: 'string' } } } },
    see: { type: 'object', additionalProperties: { type: 'string' } },
  },
};

const singleLane: Json = {
  operationId: 'singleLane',
  summary: 'Send the planned bytes in one request; the query may narrow the plan',
  tags: ['Transfer plan and creation'],
  parameters: [
    parameter('path', 'planId', { type: 'string' }, true),
    parameter('header', planHeader, { type: 'string', description: 'The signed plan' }, true),
    parameter('header', 'Content-Digest', { type: 'string', description: 'sha-256=:…: (RFC 9530), checked when sent' }, false),
    parameter('query', 'ttl', { type: 'integer', minimum: 30 }, false),
    parameter('query', 'maxUses', { type: 'integer', minimum: 1 }, false),
    parameter('query', 'allowedAgentIds', { type: 'string', description: 'Separated by commas' }, false),
  ],
  requestBody: { required: true, content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } } },
  responses: {
    201: { description: 'The transfer and its share', content: { 'application/json': { schema: jsonSchema(uploadResponse, 'output') } } },
    ...problemsOf(['plan_required', 'plan_expired', 'plan_mismatch', 'plan_widened', 'plan_already_used', 'payload_too_large', 'digest_mismatch', 'upload_expired', ...everywhere]),
  },
};

const mcpMethods = ['initialize', 'notifications/initialized', 'ping', 'tools/list', 'tools/call'];
const mcpId = { type: ['string', 'number', 'null'] };
const mcpError = { type: 'object', required: ['code', 'message'], properties: { code: { type: 'integer' }, message: { type: 'string' } } };

/** A problem where HTTP refuses, an error of JSON-RPC where the message does. */
function mcp(): Json {
  const asJson = (properties: Json) => ({ 'application/json': { schema: { type: 'object', required: ['jsonrpc', 'id'], properties: { jsonrpc: { const: '2.0' }, id: mcpId, ...properties } } } });
  const problems = problemsOf(['forbidden_origin', ...withBody, ...everywhere]);
  return {
    operationId: 'mcp',
    summary: 'Hosted MCP: one JSON-RPC message a request, answered as JSON. No sessions, no streams, no batches',
    tags: ['Hosted MCP'],
    security: [{ agent_key: [] }, { access_token: [] }, { owner_session: [] }, {}],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object', required: ['jsonrpc', 'method'], additionalProperties: false,
            properties: { jsonrpc: { const: '2.0' }, id: { ...mcpId, description: 'Absent in a notification' }, method: { type: 'string', description: mcpMethods.join(', ') }, params: { type: 'object', description: 'For tools/call: the name of a tool and its arguments, as tools/list describes them' } },
          },
        },
      },
    },
    responses: {
      200: { description: 'The response to the message', content: asJson({ result: { type: 'object' }, error: mcpError }) },
      202: { description: 'A notification was taken' },
      ...problems,
      400: { ...problems['400'], description: `${problems['400']!['description'] as string}. Or an error of JSON-RPC; for a client of 2026-07-28 an unknown method is 404`, content: { ...(problems['400']!['content'] as Json), ...asJson({ error: mcpError }) } },
    },
  };
}

const notModified: Json = { description: 'The caller has these bytes already; nothing was spent' };

function headTransfer({ get }: Json): Json {
  const { parameters } = get as Json;
  return {
    operationId: 'headTransfer',
    summary: 'The headers of a fetch; needs nothing and spends nothing',
    tags: ['Transfer bytes'],
    parameters,
    responses: { 200: { description: 'Transfer headers' }, 304: notModified, ...problemsOf(['transfer_not_found', 'precondition_failed', ...everywhere]) },
  };
}
