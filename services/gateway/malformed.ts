/** Requests that are not HTTP never reach a route; they get their answer here, and their connection ends. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { errorTable, fail, type ErrorCode } from '../../shared/errors.ts';
import { requestIdOf } from './context.ts';
import { problemBody } from './problem.ts';

/** The parser's refusals in our codes; all others are bad requests. */
const parserCodes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timed_out',
};

/** Answers what the parser refused. There is no request to speak of: no path, and an id of our own. */
export function answerMalformed(baseUrl: string) {
  return function answerMalformed(error: Error & { code?: string }, socket: Socket): void {
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const code = parserCodes[error.code ?? ''] ?? 'invalid_request';
    const requestId = requestIdOf(undefined);
    const failure = code === 'invalid_request' ? fail(code, { detail: 'The request is not well-formed HTTP.' }) : fail(code);
    const body = JSON.stringify(problemBody(failure, { baseUrl, requestId, instance: '' }));
    socket.end([
      `HTTP/1.1 ${errorTable[code].status} ${STATUS_CODES[errorTable[code].status]}`,
      'Content-Type: application/problem+json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close', 'Cache-Control: no-store', 'X-Content-Type-Options: nosniff', `X-Request-Id: ${requestId}`,
      '', body,
    ].join('\r\n'));
  };
}
