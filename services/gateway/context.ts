/** What a request carries beside its input: ids for the logs, the caller's credential and address, the operation id. */
import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Contract, Credential } from '../../shared/contract.ts';
import { operationId as operationIdSchema } from '../../shared/contracts/fields.ts';
import { fail, failField } from '../../shared/errors.ts';
import type { CallContext } from '../../shared/rpc.ts';
import { hideTokens, isSameOrigin, readAuthorization, readCookie, readToken, sessionCookieName } from './domain/credential.ts';

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

/** One value of a header; a header that came twice is as good as malformed. */
export function header(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** The request id: the caller's own when it is well-formed and no token, so that logs can be joined across systems. */
export function requestIdOf(given: string | undefined): string {
  return given && /^[A-Za-z0-9._-]{8,64}$/.test(given) && hideTokens(given) === given ? given : `req_${randomBytes(12).toString('hex')}`;
}

type Called = Pick<Contract, 'accepts' | 'idempotent' | 'proof' | 'http'>;

/** The context of a call for a contract. A credential is looked at only where the contract accepts one and nothing else proves the caller's right. */
export function contextOf(request: FastifyRequest, contract: Called, baseUrl: string): CallContext {
  const isAsked = contract.accepts.length > 0 && !bringsProof(request, contract);
  const credential = isAsked ? credentialOf(request, contract, baseUrl) : undefined;
  const operationId = contract.idempotent ? operationIdOf(request) : undefined;
  return {
    requestId: request.id,
    traceparent: request.traceparent,
    address: request.ip,
    ...(credential && { credential }),
    ...(operationId && { operationId }),
  };
}

function bringsProof(request: FastifyRequest, { proof, http }: Called): boolean {
  const name = proof && http?.headers?.[proof];
  return name !== undefined && header(request, name.toLowerCase()) !== undefined;
}

function credentialOf(request: FastifyRequest, contract: Pick<Contract, 'accepts'>, baseUrl: string): Credential | undefined {
  const authorization = header(request, 'authorization');
  if (authorization !== undefined) return readAuthorization(authorization);
  if (!contract.accepts.includes('owner_session')) return undefined;
  const token = readCookie(header(request, 'cookie') ?? '', sessionCookieName(baseUrl));
  if (!token) return undefined;
  // A browser sends the cookie with requests that other sites make: those must not change anything.
  if (!safeMethods.has(request.method)) requireSameOrigin(request, baseUrl);
  return readToken(token);
}

/** @throws forbidden_origin */
export function requireSameOrigin(request: FastifyRequest, baseUrl: string): void {
  const from = { origin: header(request, 'origin'), fetchSite: header(request, 'sec-fetch-site') };
  if (!isSameOrigin(from, baseUrl)) throw fail('forbidden_origin');
}

/** The Idempotency-Key header, or `operationId` of a JSON body; both together must say the same. */
function operationIdOf(request: FastifyRequest): string | undefined {
  const key = header(request, 'idempotency-key');
  const fromBody = (request.body as { operationId?: unknown } | undefined)?.operationId;
  if (fromBody !== undefined && typeof fromBody !== 'string') throw failField('operationId', 'must be a string');
  if (key !== undefined && fromBody !== undefined && key !== fromBody) throw failField('operationId', 'differs from Idempotency-Key');
  const operationId = key ?? fromBody;
  const parsed = operationIdSchema.optional().safeParse(operationId);
  if (!parsed.success) throw failField(key === undefined ? 'operationId' : 'Idempotency-Key', parsed.error.issues[0]!.message);
  return operationId;
}
