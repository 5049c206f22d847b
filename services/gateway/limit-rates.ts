/** Lets each caller send so many requests of each class, and says in every answer how many are left (interface chapter: Rate limits). */
import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction, RouteOptions } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import { rateClasses, type RateClass } from '../../shared/contract.ts';
import { agents } from '../../shared/contracts/agents.ts';
import { rates as rateContracts } from '../../shared/contracts/rates.ts';
import { fail, type Failure } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { Bus } from '../../shared/rpc.ts';
import { contextOf, requestIdOf } from './context.ts';
import { makeCount, type CountRequest, type TakeLease } from './count-requests.ts';
import { limitHeader, policyHeader, type RateLimit, type RateVerdict } from './domain/rate-limit.ts';
import { makeNameCaller, type Claimed, type NameCaller, type NamedCaller } from './name-callers.ts';
import { rateClassOf, unknownRoute } from './rate-classes.ts';
import type { Rates } from './rate-settings.ts';

export interface LimitDeps {
  readonly bus: Bus;
  readonly log: Logger;
  readonly baseUrl: string;
  readonly clock: Clock;
  readonly rates: Rates;
}

/** Where nobody confirms a credential so soon, its request counts for the network it came from. */
const confirmMs = 2_000;

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => void;

/** Counts the requests of every route that is added from now on, before anything of them is read but their headers. */
export function limitRates(app: FastifyInstance, deps: LimitDeps): void {
  const parts = { ...deps, nameCaller: nameCallerFrom(deps), takeLease: leaseFrom(deps) };
  const hooks = Object.fromEntries(rateClasses.map((name) => {
    const limit = deps.rates.limits[name];
    return [name, limit && countClass(name, limit, parts)];
  })) as Record<RateClass, OnRequest | undefined>;

  app.addHook('onRoute', (route: RouteOptions) => {
    const name = rateClassOf([route.method].flat()[0]!, route.url);
    const hook = name === 'free' ? undefined : hooks[name];
    if (hook) route.onRequest = [hook, ...[route.onRequest ?? []].flat()];
  });
  const hook = hooks[unknownRoute];
  if (hook) app.addHook('onRequest', (request, reply, done) => (request.is404 ? hook(request, reply, done) : done()));
}

interface Parts extends LimitDeps {
  readonly nameCaller: NameCaller;
  readonly takeLease: TakeLease;
}

/** What networks may send, or what owners and agents may. */
interface Scale {
  readonly policy: string;
  readonly count: CountRequest;
}

/** The hook of the routes of one class. */
function countClass(name: RateClass, limit: RateLimit, { nameCaller, takeLease, clock, rates }: Parts): OnRequest {
  const scaleOf = (times: number): Scale => {
    const own = { ...limit, limit: limit.limit * times };
    return { policy: policyHeader(name, own), count: makeCount({ limit: own, takeLease, clock, maxCallers: rates.maxCallers }) };
  };
  const [unknown, known] = [scaleOf(1), scaleOf(rates.knownTimes)];
  const countFor = (caller: NamedCaller, reply: FastifyReply, done: HookHandlerDoneFunction) => {
    const { policy, count } = caller.known ? known : unknown;
    settle(count(`${name} ${caller.bucket}`), (verdict) => {
      void reply.header('RateLimit-Policy', policy).header('RateLimit', limitHeader(name, verdict));
      done(verdict.passes ? undefined : refusal(verdict));
    }, done);
  };
  return (request, reply, done) => settle(nameCaller(request), (caller) => countFor(caller, reply, done), done);
}

/** Confirms credentials where they are kept. */
function nameCallerFrom({ bus, baseUrl, clock, rates }: LimitDeps): NameCaller {
  const confirm = async (credential: Claimed, request: FastifyRequest) => {
    const context = { ...contextOf(request, { accepts: [] }, baseUrl), deadline: clock() + confirmMs };
    return (await bus.call(agents.identifyCaller, { credential }, context)).caller;
  };
  return makeNameCaller({ confirm, clock, baseUrl, maxCallers: rates.maxCallers });
}

/** Goes on at once where nothing has to be waited for. */
function settle<T>(value: T | Promise<T>, next: (value: T) => void, done: HookHandlerDoneFunction): void {
  if (value instanceof Promise) value.then(next).catch((error: unknown) => done(error as Error));
  else next(value);
}

function refusal({ seconds }: RateVerdict): Failure {
  return fail('rate_limited', { retryAfter: seconds, detail: `The limit of this kind of request is reached. Wait ${seconds} s.` });
}

/** Rooms of a caller's window, from the counter in the policy service. */
function leaseFrom({ bus, log }: LimitDeps): TakeLease {
  return async function takeLease(asked) {
    const context = { requestId: requestIdOf(undefined), traceparent: noTrace };
    try {
      return await bus.call(rateContracts.leaseRequests, asked, context);
    } catch (error) {
      log.warn({ err: error }, 'requests cannot be counted together at the moment; this gateway counts by itself');
      throw error;
    }
  };
}

/** A lease serves many requests and belongs to the trace of none. */
const noTrace = `00-${'0'.repeat(31)}1-${'0'.repeat(15)}1-00`;
