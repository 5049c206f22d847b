/** The pieces that descriptions of operations are made of. */
import { z } from 'zod';
import { errorTable, type ErrorCode } from '../../shared/errors.ts';

export type Json = Record<string, unknown>;

/** Codes that every route can answer. */
export const everywhere: readonly ErrorCode[] = ['invalid_request', 'rate_limited', 'request_timed_out', 'headers_too_large', 'internal', 'service_unavailable', 'overloaded', 'deadline_exceeded'];

/** The form of an Idempotency-Key and of an operationId. */
export const operationKey: Json = { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' };

export function parameter(where: string, name: string, schema: Json | undefined, required: boolean): Json {
  const { description, ...rest } = schema ?? { type: 'string' };
  return { name, in: where, required, ...(description !== undefined && { description }), schema: rest };
}

/** One response a status, naming the codes that share it. */
export function problemsOf(codes: readonly ErrorCode[]): Record<string, Json> {
  const byStatus = Map.groupBy(new Set(codes), (code) => errorTable[code].status);
  return Object.fromEntries([...byStatus].map(([status, shared]) => [status, {
    description: shared.map((code) => `${code}: ${errorTable[code].title}`).join('. '),
    'x-error-codes': shared,
    content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
  }]));
}

export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;
  return rest;
}
