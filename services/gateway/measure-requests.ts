/** Measures every request: how many, how long, how they end. */
import type { FastifyInstance } from 'fastify';
import { Histogram } from 'prom-client';
import { fail } from '../../shared/errors.ts';
import { measureNow, type Metrics } from '../../shared/metrics.ts';

/** Seconds: from a small request to a transfer of an hour. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3_600];

/** The route and never the address: there are as many addresses as transfers. */
export function measureRequests(app: FastifyInstance, metrics: Metrics): void {
  const histogram = new Histogram({ name: 'aex_http_request_seconds', help: 'Requests over HTTP, from their head to the end of their answer', labelNames: ['method', 'route', 'status'], buckets, registers: [metrics] });
  let underWay = 0;
  measureNow(metrics, { name: 'aex_http_requests_in_flight', help: 'Requests over HTTP that are being answered' }, () => underWay);
  app.addHook('onRequest', async () => { underWay += 1; });
  app.addHook('onResponse', async ({ method, routeOptions: { url: route } }, reply) => {
    underWay -= 1;
    // A method that nobody knows could be any text.
    const labels = route === undefined ? { method: 'any', route: 'none' } : { method, route };
    histogram.observe({ ...labels, status: reply.statusCode }, reply.elapsedTime / 1_000);
  });
}

/** GET /metrics where there is no port for it: to this machine itself only, and to nobody behind a proxy. */
export function answerMetrics(app: FastifyInstance, metrics: Metrics): void {
  app.get('/metrics', async (request, reply) => {
    const isLocal = /^(127\.|::1$|::ffff:127\.)/.test(request.socket.remoteAddress ?? '') && request.headers['x-forwarded-for'] === undefined && request.headers['forwarded'] === undefined;
    if (!isLocal) throw fail('route_not_found');
    return reply.type(metrics.contentType).send(await metrics.metrics());
  });
}
