/** Which of a caller's limits each route counts against. */
import type { HttpShape, Named, RateClass } from '../../shared/contract.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import { routePath } from './mount.ts';

/** Routes without a contract. */
const ownRoutes: Readonly<Record<string, RateClass | 'free'>> = {
  'PUT /api/lane/single/:planId': 'bytes',
  'POST /api/upload': 'create',
  'OPTIONS /api/tus': 'page',
  'OPTIONS /api/tus/:uploadId': 'page',
  'POST /api/tus': 'create',
  'HEAD /api/tus/:uploadId': 'read',
  'PATCH /api/tus/:uploadId': 'bytes',
  'DELETE /api/tus/:uploadId': 'create',
  'HEAD /api/dl/:id': 'fetch',
  // Whatever the tool: a request is counted before it is read.
  'POST /mcp': 'create',
  'GET /': 'page',
  'GET /docs': 'page',
  'GET /docs/planned-upload': 'page',
  'GET /openapi.json': 'page',
  'GET /problems': 'page',
  'GET /problems/:code': 'page',
  'GET /s/:shareId': 'page',
  // Whoever watches over the exchange must see it in every weather; an asset is a few bytes from memory, and cached.
  'GET /healthz': 'free',
  'GET /readyz': 'free',
  'GET /metrics': 'free',
  'GET /assets/page.css': 'free',
  'GET /assets/page.js': 'free',
  'GET /assets/favicon.svg': 'free',
};

/** What no route serves: unknown addresses, retired surfaces, other methods. */
export const unknownRoute: RateClass = 'page';

const usual = (method: string): RateClass => (method === 'GET' || method === 'HEAD' ? 'read' : 'create');

const contractRoutes = Object.fromEntries((Object.values(allContracts) as Named[])
  .flatMap(({ http }): [string, RateClass][] => (http ? [[`${http.method} ${routePath(http.path)}`, classOf(http)]] : [])));

function classOf({ method, rate }: HttpShape): RateClass {
  return rate ?? usual(method);
}

/** Whether a route was given its class on purpose. */
export function hasRateClass(route: string): boolean {
  return Object.hasOwn(ownRoutes, route) || Object.hasOwn(contractRoutes, route);
}

/** The class of a route, with its path as the router writes it. One that nobody thought of is limited all the same. */
export function rateClassOf(method: string, path: string): RateClass | 'free' {
  const route = `${method} ${path}`;
  if (Object.hasOwn(ownRoutes, route)) return ownRoutes[route]!;
  return Object.hasOwn(contractRoutes, route) ? contractRoutes[route]! : usual(method);
}
