/** Builds the HTTP server: routes, parsers, safe headers, one way to fail. Listening is main's. */
import type { IncomingMessage } from 'node:http';
import multipart from '@fastify/multipart';
import { fastify, LogController, type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { BlobReader, BlobWriter } from '../../shared/blobs/blobs.ts';
import { systemClock } from '../../shared/clock.ts';
import { folders } from '../../shared/contracts/folders.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import type { Named } from '../../shared/contract.ts';
import { fail, failField } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { Bus } from '../../shared/rpc.ts';
import { traceIdOf } from '../../shared/tracing.ts';
import { followRoutes } from './allowed-methods.ts';
import { boundRequests, type Bounds } from './bound-requests.ts';
import { requestIdOf } from './context.ts';
import { parseJson } from './domain/json-body.ts';
import type { FollowPipes } from './follow-pipes.ts';
import { acceptBody, holdContinue } from './expect-continue.ts';
import { authenticate } from './handlers/agent-auth.ts';
import { fetchTransfer, headTransfer } from './handlers/fetch-transfer.ts';
import { healthz, readyz } from './handlers/health.ts';
import { mountMcp, type McpDeps } from './handlers/mcp.ts';
import { completeFile, readCompletion } from './handlers/complete-file.ts';
import { listFolder } from './handlers/list-folder.ts';
import { finishOidc, startOidc } from './handlers/oidc.ts';
import { changePassword, closeSession, closeSessions, openSession } from './handlers/owner-session.ts';
import { mountPages } from './handlers/pages.ts';
import { queryAudit } from './handlers/query-audit.ts';
import { isRetired, retired } from './handlers/retired.ts';
import { singleLane } from './handlers/single-lane.ts';
import { tus } from './handlers/tus.ts';
import { uploadForm } from './handlers/upload-form.ts';
import { writePipe } from './handlers/write-pipe.ts';
import { uploadPart } from './handlers/upload-part.ts';
import type { Surfaces } from './legacy-surfaces.ts';
import { zipFolder } from './handlers/zip-folder.ts';
import { mountContracts } from './mount.ts';
import { describeInterface } from './openapi.ts';
import { answerMalformed } from './malformed.ts';
import { answerMetrics, measureRequests } from './measure-requests.ts';
import { limitRates } from './limit-rates.ts';
import { traceRequests } from './trace-requests.ts';
import type { Rates } from './rate-settings.ts';
import { instanceOf, sendFailure, toFailure } from './problem.ts';
import { jsonLimit, readBody } from './request-body.ts';
import type { Uses } from './uses.ts';

export interface AppDeps {
  readonly bus: Bus;
  readonly uses: Uses;
  readonly blobs: BlobReader & BlobWriter;
  readonly follows: FollowPipes;
  readonly log: Logger;
  /** `isShown` where they have no port of their own. */
  readonly metrics: { readonly registry: Metrics; readonly isShown: boolean };
  readonly baseUrl: string;
  readonly version: string;
  /** Addresses of proxies whose X-Forwarded-For counts; CIDR ranges. A count of hops would be forgeable. */
  readonly trustedProxies: readonly string[];
  /** Where requests to /mcp may come from, beside the exchange itself. */
  readonly mcp: McpDeps['mcp'];
  /** Milliseconds that a fetch of a pipe waits for the first byte, and a pipe for another byte of its sender. */
  readonly pipeWaitMs: number;
  readonly pipeIdleMs: number;
  /** The retired surfaces that work all the same. */
  readonly legacy: Surfaces;
  /** Absent when requests are not counted. */
  readonly rates?: Rates | undefined;
  readonly bounds: Bounds;
  /** Aborted when this process is told to stop. */
  readonly leaving: AbortSignal;
}

/** An idle connection, a header or a small body that drips in are cut; long transfers have deadlines of their own. */
const idleMs = 75_000;
const headersMs = 15_000;

export async function buildApp(deps: AppDeps): Promise<FastifyInstance> {
  const { baseUrl, log } = deps;
  const app: FastifyInstance = fastify({
    loggerInstance: log as FastifyBaseLogger,
    genReqId: (raw) => requestIdOf(raw.headers['x-request-id'] as string | undefined),
    logController: new LogController({ requestIdLogLabel: 'requestId', disableRequestLogging: true }),
    trustProxy: deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false,
    exposeHeadRoutes: false,
    bodyLimit: jsonLimit,
    connectionTimeout: idleMs,
    keepAliveTimeout: idleMs,
    forceCloseConnections: 'idle',
    // A request that reached a process that stops is answered like any other.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 512 },
    // A plan with a full allow list is a long header.
    http: { maxHeaderSize: 64 * 1_024, headersTimeout: headersMs, requestTimeout: 0, requireHostHeader: false },
    clientErrorHandler: answerMalformed(baseUrl),
    frameworkErrors: (error, request, reply) => {
      setSafeHeaders(request, reply, baseUrl);
      void sendFailure(reply, toFailure(error), baseUrl);
    },
  });
  holdContinue(app);
  const methodsOf = followRoutes(app);

  traceRequests(app);
  measureRequests(app, deps.metrics.registry);
  app.addHook('onRequest', async (request, reply) => setSafeHeaders(request, reply, baseUrl));
  app.addHook('onRequest', async (request, reply) => requireOneHost(request, reply));
  app.addHook('onRequest', async (_request, reply) => {
    // The next request of this connection belongs to another process.
    if (deps.leaving.aborted) void reply.header('Connection', 'close');
  });
  if (deps.rates) limitRates(app, { ...deps, rates: deps.rates, clock: systemClock });
  // After the counting is added, so that it comes before: a refusal asks nobody.
  boundRequests(app, deps.bounds);
  app.addHook('onResponse', async (request, reply) => {
    request.log.info({ traceId: traceIdOf(request.traceparent), method: request.method, path: instanceOf(request), status: reply.statusCode, ms: Math.round(reply.elapsedTime * 10) / 10 }, 'request');
  });
  app.setErrorHandler((error, request, reply) => {
    const failure = toFailure(error);
    if (failure.code === 'internal' && !request.raw.destroyed) request.log.error({ err: failure.cause }, 'request failed');
    return sendFailure(reply, failure, baseUrl);
  });
  useStrictJson(app);
  mountRoutes(app, deps);
  await app.register(async (bytes) => mountByteRoutes(bytes, deps));
  await app.register(async (mcp) => mountMcp(mcp, deps));
  answerUnknown(app, deps, methodsOf);
  return app;
}

function mountRoutes(app: FastifyInstance, deps: AppDeps): void {
  const { bus, baseUrl } = deps;
  const openapi = describeInterface(deps);
  mountContracts(app, Object.values(allContracts) as Named[], { bus, baseUrl });
  mountPages(app, { bus, baseUrl, openapi });
  app.post('/api/owner/session', openSession({ bus, baseUrl }));
  app.delete('/api/owner/session', closeSession({ bus, baseUrl }));
  app.delete('/api/owner/sessions', closeSessions({ bus, baseUrl }));
  app.post('/api/owner/password', changePassword({ bus, baseUrl }));
  app.get('/api/owner/oidc/start', startOidc({ bus, baseUrl }));
  app.get('/api/owner/oidc/callback', finishOidc({ bus, baseUrl }));
  app.post('/api/agent/auth', authenticate({ bus, baseUrl }));
  app.get('/api/audit', queryAudit({ bus, baseUrl }));
  app.get('/api/dl/:id', fetchTransfer(deps));
  app.head('/api/dl/:id', headTransfer(deps));
  app.get('/api/folder/:folderId', listFolder({ bus, baseUrl }));
  app.post('/api/folder/:folderId/upload-complete', completeFile({ bus, baseUrl }, folders.completeFile));
  app.post('/api/folder/:folderId/upload-direct-complete', completeFile({ bus, baseUrl }, folders.completeDirectFile));
  app.get('/api/folder/:folderId/upload-status', readCompletion({ bus, baseUrl }));
  app.get('/api/folder/:folderId/zip', zipFolder(deps));
  app.get('/openapi.json', async () => openapi);
  if (deps.metrics.isShown) answerMetrics(app, deps.metrics.registry);
  app.get('/healthz', healthz);
  app.get('/readyz', readyz(bus, deps.leaving));
}

/** Routes whose bodies are bytes: any content type, unread until the handler reads it. */
async function mountByteRoutes(app: FastifyInstance, deps: AppDeps): Promise<void> {
  app.removeAllContentTypeParsers();
  await app.register(multipart);
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.put('/api/lane/single/:planId', { bodyLimit: Number.MAX_SAFE_INTEGER }, singleLane(deps));
  app.post('/api/upload/multipart/part', { bodyLimit: Number.MAX_SAFE_INTEGER }, uploadPart(deps));
  app.put('/api/pipe/:pipeId', { bodyLimit: Number.MAX_SAFE_INTEGER }, writePipe(deps));
  mountLegacy(app, deps);
}

function mountLegacy(app: FastifyInstance, deps: AppDeps): void {
  if (deps.legacy.has('upload')) app.post('/api/upload', { bodyLimit: Number.MAX_SAFE_INTEGER }, uploadForm(deps));
  if (!deps.legacy.has('tus')) return;
  const route = { bodyLimit: Number.MAX_SAFE_INTEGER, handler: tus(deps) };
  for (const method of ['OPTIONS', 'POST']) app.route({ ...route, method, url: '/api/tus' });
  for (const method of ['OPTIONS', 'HEAD', 'PATCH', 'DELETE']) app.route({ ...route, method, url: '/api/tus/:uploadId' });
}

function useStrictJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addHook('preParsing', async (_request, reply) => {
    if (reply.routeOptions.bodyLimit === undefined || reply.routeOptions.bodyLimit <= jsonLimit) acceptBody(reply);
  });
  app.addContentTypeParser('application/json', async (_request: FastifyRequest, payload: IncomingMessage) => {
    const bytes = await readBody(payload, jsonLimit);
    return bytes.length === 0 ? undefined : parseJson(bytes);
  });
}

/** Headers of every response; handlers that serve bytes or pages narrow them further. */
function setSafeHeaders(request: FastifyRequest, reply: FastifyReply, baseUrl: string): void {
  void reply.headers({
    'X-Request-Id': request.id,
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'Cache-Control': 'no-store',
    ...(baseUrl.startsWith('https:') && { 'Strict-Transport-Security': 'max-age=31536000' }),
  });
}

/** Promise (RFC 9112, section 3.2): a request names one host. Whoever stands in front of us could take two for another place than we do. */
function requireOneHost({ raw }: FastifyRequest, reply: FastifyReply): void {
  const hosts = raw.headersDistinct['host']?.length ?? 0;
  if (hosts === 1 || (hosts === 0 && raw.httpVersion === '1.0')) return;
  void reply.header('Connection', 'close');
  throw failField('Host', 'must be given once');
}

/** What no route serves: a retired surface, a known path with another method, or nothing. It is answered before its body is read, whatever that is. */
function answerUnknown(app: FastifyInstance, { baseUrl, legacy }: AppDeps, methodsOf: (path: string) => string[]): void {
  const refuse = (request: FastifyRequest, reply: FastifyReply) => {
    const path = instanceOf(request);
    const methods = methodsOf(path);
    if (methods.length > 0) {
      void reply.header('Allow', methods.join(', '));
      return sendFailure(reply, fail('method_not_allowed'), baseUrl);
    }
    return sendFailure(reply, isRetired(path, legacy) ? retired(baseUrl) : fail('route_not_found'), baseUrl);
  };
  app.setNotFoundHandler(refuse);
  app.addHook('onRequest', async (request, reply) => (request.is404 ? refuse(request, reply) : undefined));
}
