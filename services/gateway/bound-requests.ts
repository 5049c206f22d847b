/** Bounds the requests under way in this process: one more is refused from its head, before its body is read. Transfers are counted apart, so that many slow ones leave room for small requests. */
import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction, RouteOptions } from 'fastify';
import type { Named } from '../../shared/contract.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import { fail } from '../../shared/errors.ts';
import { routePath } from './mount.ts';
import { rateClassOf } from './rate-classes.ts';
import { jsonLimit } from './request-body.ts';

/** Most that are under way at once. */
export interface Bounds {
  readonly requests: number;
  /** Requests whose body or answer is bytes of a caller. */
  readonly transfers: number;
}

const answersOfBytes = new Set((Object.values(allContracts) as Named[])
  .flatMap(({ http }) => (http?.responseType === undefined ? [] : [`${http.method} ${routePath(http.path)}`])));

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => void;

/** Bounds every route that is added from now on, but for those that watch over the exchange. */
export function boundRequests(app: FastifyInstance, bounds: Bounds): void {
  const [requests, transfers] = [admitUpTo(bounds.requests), admitUpTo(bounds.transfers)];
  app.addHook('onRoute', (route: RouteOptions) => {
    const method = [route.method].flat()[0]!;
    if (rateClassOf(method, route.url) === 'free') return;
    const isTransfer = (route.bodyLimit ?? 0) > jsonLimit || answersOfBytes.has(`${method} ${route.url}`);
    route.onRequest = [isTransfer ? transfers : requests, ...[route.onRequest ?? []].flat()];
  });
  app.addHook('onRequest', (request, reply, done) => (request.is404 ? requests(request, reply, done) : done()));
}

function admitUpTo(limit: number): OnRequest {
  let underWay = 0;
  return (_request, reply, done) => {
    if (underWay >= limit) return done(fail('overloaded', { retryAfter: 1 }));
    if (reply.raw.closed) return done();
    underWay += 1;
    reply.raw.once('close', () => { underWay -= 1; });
    done();
  };
}
