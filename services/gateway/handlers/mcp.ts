/** POST /mcp: hosted MCP, one JSON-RPC message a request and one JSON answer; no sessions, no streams (interface chapter: Hosted MCP). */
import { createMcpHandler, INVALID_PARAMS, INVALID_REQUEST, isJSONRPCRequest, isLegacyRequest, isSpecType, METHOD_NOT_FOUND, PARSE_ERROR, WebStandardStreamableHTTPServerTransport, type JSONRPCRequest, type McpServer } from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fail, Failure } from '../../../shared/errors.ts';
import { header } from '../context.ts';
import { hideTokens } from '../domain/credential.ts';
import { parseJson } from '../domain/json-body.ts';
import { isAllowedHost, isAllowedOrigin, mcpAccess, type McpAccess } from '../domain/mcp-origin.ts';
import { jsonLimit, readBody } from '../request-body.ts';
import { serverMaker } from './mcp/server.ts';
import type { ToolDeps } from './mcp/tool.ts';

export interface McpDeps extends ToolDeps {
  readonly version: string;
  /** Names and origins beside the exchange's own. */
  readonly mcp: { readonly hosts: readonly string[]; readonly origins: readonly string[] };
}

export function mountMcp(app: FastifyInstance, deps: McpDeps): void {
  const access = mcpAccess(deps.baseUrl, deps.mcp);
  // As bytes: what is no JSON is an error of JSON-RPC here.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (_request: FastifyRequest, payload: FastifyRequest['raw']) => readBody(payload, jsonLimit));
  app.addHook('onRequest', async (request) => requireAllowed(request, access));
  app.post('/mcp', serveMcp(deps));
}

/** @throws forbidden_origin */
function requireAllowed(request: FastifyRequest, access: McpAccess): void {
  const { host } = request.headers;
  if (!isAllowedHost(host, access)) throw fail('forbidden_origin', { detail: 'The Host of the request is not a name of this exchange. MCP_ALLOWED_HOSTS adds names.' });
  if (!isAllowedOrigin({ origin: header(request, 'origin'), host: host! }, access)) throw fail('forbidden_origin', { detail: 'Pages of this origin may not use the exchange by MCP. MCP_ALLOWED_ORIGINS adds origins.' });
}

function serveMcp(deps: McpDeps) {
  const makeServer = serverMaker(deps);
  return async function serveMcp(request: FastifyRequest, reply: FastifyReply) {
    const read = readMessage(request.body as Buffer | undefined);
    if ('error' in read) return sendText(reply, read.status, JSON.stringify({ jsonrpc: '2.0', id: read.id ?? null, error: read.error }));
    const response = await answer(makeServer({ ...deps, request }), webRequest(request, deps.baseUrl), read.message);
    const text = await response.text();
    return sendText(reply, response.status, read.ownId === undefined ? text : withId(text, read.ownId));
  };
}

/** What the SDK is given of a message, and the id that the answer has in place of its own. */
interface Message {
  readonly message: unknown;
  readonly ownId?: null | number;
}

interface Refusal {
  readonly status: number;
  readonly id?: unknown;
  readonly error: { readonly code: number; readonly message: string };
}

function readMessage(body: Buffer | undefined): Message | Refusal {
  const read = parseMessage(body ?? Buffer.alloc(0));
  if ('error' in read) return read;
  // One request costs its caller one request of the rate limit.
  if (Array.isArray(read.message)) return { status: 400, error: { code: INVALID_REQUEST, message: 'Invalid request: send one message a request, batches are not supported' } };
  const message = withPlainId(read.message);
  const refusal = isJSONRPCRequest(message.message) ? refuseRequest(message.message) : undefined;
  return refusal ? { id: (read.message as { id: unknown }).id, ...refusal } : message;
}

function parseMessage(body: Buffer): Message | Refusal {
  try {
    return { message: parseJson(body, { exactNumbers: true }) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const isJson = error.details.errors?.[0]?.path !== 'body';
    return { status: 400, error: { code: isJson ? INVALID_REQUEST : PARSE_ERROR, message: `${isJson ? 'Invalid request' : 'Parse error'}: ${error.message}` } };
  }
}

/** The interface lets an id be null or any number, and MCP does not: such a request gets another id for the time that it is answered. */
function withPlainId(message: unknown): Message {
  const { id } = (message ?? {}) as { id?: unknown };
  return id === null || (typeof id === 'number' && !Number.isSafeInteger(id)) ? { message: { ...(message as object), id: 'another' }, ownId: id } : { message };
}

/** Requests that the SDK would call its own fault when their parameters are wrong. */
const checked: Readonly<Record<string, (message: unknown) => boolean>> = { initialize: isSpecType.InitializeRequest, 'tools/list': isSpecType.ListToolsRequest, 'tools/call': isSpecType.CallToolRequest };

function refuseRequest(request: JSONRPCRequest): Refusal | undefined {
  const { method } = request;
  // It would be a stream that stays open, and no tool ever changes.
  if (method === 'subscriptions/listen') return { status: 404, error: { code: METHOD_NOT_FOUND, message: 'Method not found' } };
  if (Object.hasOwn(checked, method) && !checked[method]!(request)) return { status: 200, error: { code: INVALID_PARAMS, message: `Invalid params of ${method}` } };
  return undefined;
}

/** What the SDK looks at of a request. The answer is JSON whatever the client accepts, so it is not asked. */
function webRequest(request: FastifyRequest, baseUrl: string): Request {
  const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' });
  for (const name of ['mcp-protocol-version', 'mcp-method', 'mcp-name']) {
    const value = header(request, name);
    if (value !== undefined) headers.set(name, value);
  }
  return new Request(`${baseUrl}/mcp`, { method: 'POST', headers });
}

/** Clients of 2026-07-28 say so in each message; all others are of the 2025 revisions. */
async function answer(server: McpServer, request: Request, parsedBody: unknown): Promise<Response> {
  if (!(await isLegacyRequest(request, parsedBody))) return createMcpHandler(() => server, { legacy: 'reject' }).fetch(request, { parsedBody });
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await transport.handleRequest(request, { parsedBody });
  } finally {
    await server.close();
  }
}

function withId(text: string, id: null | number): string {
  return text === '' ? text : JSON.stringify({ ...(parseJson(Buffer.from(text), { exactNumbers: true }) as object), id });
}

/** Promise: an error repeats no token that its sender put in a wrong place. Results hold the tokens that were asked for. */
function sendText(reply: FastifyReply, status: number, text: string): FastifyReply {
  reply.code(status);
  if (text === '') return reply.send();
  return reply.type('application/json; charset=utf-8').send(text.startsWith('{"result":') ? text : hideTokens(text));
}
