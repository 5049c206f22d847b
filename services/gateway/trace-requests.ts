/** Every request is a step of a trace: of its caller's, or of one that begins here. */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { beginStep, type Step } from '../../shared/tracing.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** W3C trace context for the calls of this request. */
    traceparent: string;
    step: Step | undefined;
  }
}

export function traceRequests(app: FastifyInstance): void {
  app.decorateRequest('traceparent', '');
  app.decorateRequest('step', undefined);
  app.addHook('onRequest', async (request) => {
    const came = readTraceparent(request.headers['traceparent']);
    const { method, routeOptions: { url: route } } = request;
    // An address may hold an id that a log should not; the route says enough.
    const attributes = { 'http.request.method': method, ...(route !== undefined && { 'http.route': route }) };
    request.step = beginStep({ name: route === undefined ? method : `${method} ${route}`, kind: 'server', traceparent: came ?? '', attributes });
    request.traceparent = request.step.traceparent ?? `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
  });
  app.addHook('onResponse', async (request, reply) => request.step?.end(undefined, { 'http.response.status_code': reply.statusCode }));
  app.addHook('onRequestAbort', async (request) => request.step?.end(undefined, { 'error.type': 'client_closed_request' }));
}

function readTraceparent(given: string | string[] | undefined): string | undefined {
  return typeof given === 'string' && /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.test(given) ? given : undefined;
}
