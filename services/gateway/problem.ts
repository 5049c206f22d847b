/** Turns a failure into its answer: problem+json (RFC 9457) with the status of the error table. */
import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorTable, fail, Failure, type ErrorCode } from '../../shared/errors.ts';
import { hideTokens } from './domain/credential.ts';

/** The body of every error answer. */
export function problemBody(failure: Failure, request: { baseUrl: string; requestId: string; instance: string }): object {
  const { code, details } = failure;
  const entry = errorTable[code];
  return {
    type: `${request.baseUrl}/problems/${code}`,
    title: entry.title,
    status: entry.status,
    detail: details.detail === undefined ? entry.advice : hideTokens(details.detail),
    instance: request.instance,
    code,
    requestId: request.requestId,
    retryable: 'retryable' in entry,
    ...(details.errors && { errors: details.errors.map(({ path, message }) => ({ path: hideTokens(path), message: hideTokens(message) })) }),
    ...(details.see && { see: details.see }),
  };
}

/** Headers that belong to a code. */
export function problemHeaders(failure: Failure): Record<string, string> {
  const { code, details } = failure;
  const { status } = errorTable[code];
  return {
    ...(status === 401 && { 'WWW-Authenticate': 'Bearer realm="asset exchange"' }),
    ...((status === 503 || status === 429 || details.retryAfter !== undefined) && { 'Retry-After': String(details.retryAfter ?? 1) }),
    ...(code === 'range_not_satisfiable' && { 'Content-Range': `bytes */${details.size ?? 0}` }),
  };
}

/** Codes of Fastify's own refusals, in ours. */
const frameworkCodes: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_request',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
  FST_ERR_BAD_URL: 'invalid_request',
  FST_ERR_ASYNC_CONSTRAINT: 'invalid_request',
  FST_ERR_MAX_PARAM_LENGTH: 'route_not_found',
};

/** Anything thrown, as a failure. What nobody expected becomes `internal` and keeps its cause for the log. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const { code, message } = error as { code?: string; message?: string };
  const known = code === undefined ? undefined : frameworkCodes[code];
  if (known === 'invalid_request') return fail(known, { detail: message ?? '' }, error);
  return known ? fail(known, {}, error) : fail('internal', {}, error);
}

/** The address without its query and without tokens: what a log or an answer must not repeat. */
export function instanceOf(request: FastifyRequest): string {
  return hideTokens(request.url.split('?', 1)[0]!).slice(0, 512);
}

/** How long a refused body may go on coming, so that its sender reads the answer instead of a broken connection. */
const lingerMs = 5_000;

/** Takes and drops what still comes of a refused body, also from a parser that stopped reading it; a sender that does not stop is cut off. */
function linger(raw: IncomingMessage): void {
  raw.unpipe().resume();
  if (raw.complete) return;
  const timer = setTimeout(() => raw.socket.destroy(), lingerMs);
  raw.once('close', () => clearTimeout(timer));
}

/** Answers a failure. */
export function sendFailure(reply: FastifyReply, failure: Failure, baseUrl: string): FastifyReply {
  const { request } = reply;
  if (!request.raw.destroyed) linger(request.raw);
  // The framework would end the connection under a sender that has not read the answer yet.
  if (failure.code === 'payload_too_large') void reply.removeHeader('Connection');
  return reply
    .code(errorTable[failure.code].status)
    .headers(problemHeaders(failure))
    .header('Content-Type', 'application/problem+json; charset=utf-8')
    .send(JSON.stringify(problemBody(failure, { baseUrl, requestId: request.id, instance: instanceOf(request) })));
}
