/** Every route has a limit that somebody chose, or is free on purpose. */
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { makeMetrics } from '../../shared/metrics.ts';
import type { Bus } from '../../shared/rpc.ts';
import { buildApp, type AppDeps } from './app.ts';
import { hasRateClass, rateClassOf } from './rate-classes.ts';

/** The routes of the whole app; none of them is called. */
async function routesOfApp(): Promise<string[]> {
  const app = await buildApp({
    bus: {} as Bus, uses: {} as AppDeps['uses'], blobs: {} as AppDeps['blobs'], log: pino({ level: 'silent' }), baseUrl: 'http://localhost', version: '0', trustedProxies: [], mcp: { hosts: [], origins: [] },
    follows: {} as AppDeps['follows'], pipeWaitMs: 1, pipeIdleMs: 1, legacy: new Set(['upload', 'tus']),
    metrics: { registry: makeMetrics('test'), isShown: true }, bounds: { requests: 1, transfers: 1 }, leaving: new AbortController().signal,
  });
  await app.ready();
  const routes = app.printRoutes({ commonPrefix: false, includeHooks: false });
  await app.close();
  return routesIn(routes);
}

/** Reads the router's own picture of its routes: a tree of path parts, each with its methods. */
function routesIn(tree: string): string[] {
  const path: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent, part, methods] = /^([│ ]*)[├└]── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? [];
    if (part === undefined) return [];
    path.length = indent!.length / 4;
    path.push(part);
    return (methods ?? '').split(', ').filter(Boolean).map((method) => `${method} ${path.join('')}`);
  });
}

test('every route of the gateway has a rate class or is free on purpose', async () => {
  const routes = await routesOfApp();
  expect(routes.length).toBeGreaterThan(30);
  expect(routes).toContain('PUT /api/lane/single/:planId');
  expect(routes.filter((route) => !hasRateClass(route))).toEqual([]);
});

test.each([
  ['POST', '/api/transfer-plan', 'create'],
  ['POST', '/api/upload/multipart/part', 'bytes'],
  ['GET', '/api/dl/:id', 'fetch'],
  ['POST', '/api/agent/grants', 'fetch'],
  ['GET', '/api/share/:shareId', 'read'],
  ['POST', '/api/owner/session', 'auth'],
  ['POST', '/mcp', 'create'],
  ['GET', '/readyz', 'free'],
  ['POST', '/not/thought/of', 'create'],
  ['GET', '/not/thought/of', 'read'],
])('%s %s counts as %s', (method, path, name) => {
  expect(rateClassOf(method, path)).toBe(name);
});
