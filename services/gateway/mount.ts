/** Mounts every JSON contract as an HTTP route by itself: read the input, call the service, pass its answer on unread. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { HttpShape, Named } from '../../shared/contract.ts';
import { failField, type Failure } from '../../shared/errors.ts';
import { parseInput, type Bus } from '../../shared/rpc.ts';
import { contextOf, header } from './context.ts';

export interface MountOptions {
  readonly bus: Bus;
  readonly baseUrl: string;
}

/** Between the deadline of a request and the end of its connection. */
const graceMs = 10_000;

/** `/api/share/{shareId}` as the router writes it. */
export function routePath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

export function mountContracts(app: FastifyInstance, contracts: readonly Named[], { bus, baseUrl }: MountOptions): void {
  for (const contract of contracts) {
    const { http } = contract;
    if (!http || http.handled) continue;
    app.route({
      method: http.method,
      url: routePath(http.path),
      handler: async (request, reply) => {
        const context = contextOf(request, contract, baseUrl);
        const input = parseInput(contract, readInput(request, contract));
        // The connection is silent while a long request is worked on, and must not be taken for idle.
        if (contract.deadlineMs) request.raw.socket.setTimeout(contract.deadlineMs + graceMs);
        const answer = await bus.callRaw(contract, input, context);
        return reply.code(http.status).type('application/json; charset=utf-8').send(answer.json);
      },
    });
  }
}

/** The name comes from outside and may be long: enough of it to recognise is repeated. */
export function unknownParameter(name: string): Failure {
  return failField(name.slice(0, 64), 'unknown query parameter');
}

/** Gathers a contract's input from path, query, headers and body. What does not belong to it is left in, to be refused by name. */
export function readInput(request: FastifyRequest, contract: Named): unknown {
  const http = contract.http!;
  const body = readBody(request, http, contract);
  const input: Record<string, unknown> = { ...body };
  for (const [field, value] of Object.entries(request.query as Record<string, unknown>)) {
    if (http.query?.includes(field) !== true) throw unknownParameter(field);
    input[field] = typeof value === 'string' ? readQueryValue(contract, field, value) : value;
  }
  for (const [field, name] of Object.entries(http.headers ?? {})) {
    if (field in body) throw failField(field, `belongs in the header ${name}`);
    const value = header(request, name.toLowerCase());
    if (value !== undefined) input[field] = value;
  }
  return { ...input, ...(request.params as object) };
}

function readBody(request: FastifyRequest, http: HttpShape, { idempotent, input }: Named): Record<string, unknown> {
  const { body } = request;
  if (body === undefined || body === null) {
    if (body === undefined && (http.body === 'empty' || http.method === 'GET' || http.method === 'DELETE')) return {};
    throw failField('body', 'must be a JSON object');
  }
  if (typeof body !== 'object' || Array.isArray(body)) throw failField('body', 'must be a JSON object');
  const fields = body as Record<string, unknown>;
  // A command's own id is part of what is asked; any other is the request's, and goes with its context.
  if ('operationId' in (input as z.ZodObject).shape) return fields;
  if (!idempotent && 'operationId' in fields) throw failField('operationId', 'unknown field');
  const { operationId: _ofRequest, ...asked } = fields;
  return asked;
}

/** Query values are text; where the contract wants a number, digits become one and anything else is refused there. */
function readQueryValue(contract: Named, field: string, value: string): unknown {
  const schema = (contract.input as z.ZodObject).shape[field] as z.ZodType | undefined;
  return schema && isNumber(schema) && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

function isNumber(schema: z.ZodType): boolean {
  const { def } = schema as unknown as { def: { type: string; innerType?: z.ZodType } };
  return def.innerType ? isNumber(def.innerType) : def.type === 'number';
}
