/** The interface description, OpenAPI 3.1, made from the contracts and the few routes that have none. */
import { z } from 'zod';
import type { Contract, CredentialKind, Named } from '../../shared/contract.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import { uploadResponse } from '../../shared/contracts/fields.ts';
import { planHeader } from '../../shared/contracts/plans.ts';
import { errorTable, type ErrorCode } from '../../shared/errors.ts';

type Json = Record<string, unknown>;

/** Codes that every route can answer. */
const everywhere: readonly ErrorCode[] = ['invalid_request', 'rate_limited', 'request_timed_out', 'headers_too_large', 'internal', 'service_unavailable', 'overloaded', 'deadline_exceeded'];

/** Codes that every route with a JSON body can answer. */
const withBody: readonly ErrorCode[] = ['payload_too_large', 'unsupported_media_type'];

/** The form of an Idempotency-Key and of an operationId. */
const operationKey: Json = { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' };

const schemes: Readonly<Record<CredentialKind, Json>> = {
  agent_key: { type: 'http', scheme: 'bearer', bearerFormat: 'agk_<keyId>.<secret>', description: 'Root agent key' },
  access_token: { type: 'http', scheme: 'bearer', bearerFormat: 'aat_<token>', description: 'Short-lived access token, accepted on resolve' },
  owner_session: { type: 'http', scheme: 'bearer', bearerFormat: 'aos_<token>', description: 'Owner session; a browser sends it as a cookie' },
};

const operations = 'Operations';

/** Chapters of the interface in their order, each with the paths that belong to it. */
const chapters: readonly [RegExp, string][] = [
  [/^\/api\/(transfer-plan|lane|upload(?!\/multipart)|tus)/, 'Transfer plan and creation'],
  [/^\/api\/upload\/multipart/, 'Native multipart lane'],
  [/^\/api\/folder/, 'Folders'],
  [/^\/api\/(share|agent\/(auth|grants))/, 'Share, agent auth, grants'],
  [/^\/api\/agent\/groups/, 'Agent groups'],
  [/^\/api\/agent\/permissions/, 'Standing permissions'],
  [/^\/api\/dl/, 'Transfer bytes'],
  [/^\/api\/(owner|agent)/, 'Owners and agent keys'],
  [/^\/api\/audit/, 'Audit'],
];

export function describeInterface(baseUrl: string, version: string): Json {
  const paths: Record<string, Json> = {};
  const add = (path: string, method: string, operation: Json) => { (paths[path] ??= {})[method.toLowerCase()] = operation; };
  for (const contract of Object.values(allContracts) as Named[]) {
    if (contract.http) add(contract.http.path, contract.http.method, operationOf(contract));
  }
  add('/api/lane/single/{planId}', 'put', singleLane);
  const fetched = paths['/api/dl/{id}']!['get'] as { responses: Json };
  fetched.responses = { ...fetched.responses, 206: { ...(fetched.responses['200'] as Json), description: 'The range that was asked for' }, 304: notModified };
  add('/api/dl/{id}', 'head', headTransfer(paths['/api/dl/{id}']!));
  for (const path of ['/api/upload', '/api/tus']) add(path, 'post', retired);
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

function parameter(where: string, name: string, schema: Json | undefined, required: boolean): Json {
  const { description, ...rest } = schema ?? { type: 'string' };
  return { name, in: where, required, ...(description !== undefined && { description }), schema: rest };
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

/** One response a status, naming the codes that share it. */
function problemsOf(codes: readonly ErrorCode[]): Record<string, Json> {
  const byStatus = Map.groupBy(new Set(codes), (code) => errorTable[code].status);
  return Object.fromEntries([...byStatus].map(([status, shared]) => [status, {
    description: shared.map((code) => `${code}: ${errorTable[code].title}`).join('. '),
    'x-error-codes': shared,
    content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
  }]));
}

function chapterOf(path: string): string {
  return chapters.find(([pattern]) => pattern.test(path))?.[1] ?? operations;
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;
  return rest;
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

const retired: Json = {
  operationId: undefined,
  summary: 'Retired; every method answers 410. Use a transfer plan',
  tags: ['Transfer plan and creation'],
  deprecated: true,
  responses: problemsOf(['transfer_surface_retired']),
};
