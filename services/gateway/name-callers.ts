/**
 * Names the caller whom a request counts for: the owner or the agent when the credential is good, else the network it came from.
 * A claim counts for nobody before it is confirmed: a made-up credential neither spends its victim's limit nor brings a fresh one.
 */
import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import type { Caller, Credential } from '../../shared/contract.ts';
import { Failure } from '../../shared/errors.ts';
import { header } from './context.ts';
import { readAuthorization, readCookie, readToken, sessionCookieName } from './domain/credential.ts';
import { networkOf } from './domain/rate-limit.ts';
import { rememberRecent } from './recent.ts';

export interface NamedCaller {
  readonly bucket: string;
  /** Whether it is an owner or an agent, and not a network. */
  readonly known: boolean;
}

/** A credential of a form that somebody can have. */
export type Claimed = Exclude<Credential, { kind: 'unknown' }>;

export interface NameOptions {
  /** Throws a 401 code when the credential is not good. */
  readonly confirm: (credential: Claimed, request: FastifyRequest) => Promise<Caller>;
  readonly clock: Clock;
  readonly baseUrl: string;
  readonly maxCallers: number;
}

interface Claim {
  /** Absent when the credential belongs to nobody. */
  readonly name: Promise<NamedCaller | undefined> | NamedCaller | undefined;
  readonly until: number;
}

/** A credential is confirmed again after this long; who has lost it in the meantime only spends its own limit. */
const confirmedMs = 60_000;

export type NameCaller = (request: FastifyRequest) => NamedCaller | Promise<NamedCaller>;

export function makeNameCaller({ confirm, clock, baseUrl, maxCallers }: NameOptions): NameCaller {
  const claims = rememberRecent<Claim>(maxCallers);
  const cookieName = sessionCookieName(baseUrl);

  function credentialOf(request: FastifyRequest): [sent: string, read: () => Credential] | undefined {
    const authorization = header(request, 'authorization');
    if (authorization !== undefined) return [authorization, () => readAuthorization(authorization)];
    const cookie = header(request, 'cookie');
    const token = cookie === undefined ? undefined : readCookie(cookie, cookieName);
    return token ? [`cookie ${token}`, () => readToken(token)] : undefined;
  }

  async function ask(key: string, credential: Claimed, request: FastifyRequest): Promise<NamedCaller | undefined> {
    const remember = (name: NamedCaller | undefined, forMs: number) => {
      claims.set(key, { name, until: clock() + forMs });
      return name;
    };
    try {
      return remember(nameOf(await confirm(credential, request)), confirmedMs);
    } catch (error) {
      const isRefused = error instanceof Failure && error.code.startsWith('invalid_');
      return remember(undefined, isRefused ? confirmedMs : 0);
    }
  }

  return function nameCaller(request) {
    const network = () => ({ bucket: `n ${networkOf(request.ip ?? '')}`, known: false });
    const credential = credentialOf(request);
    if (!credential) return network();
    const [sent, read] = credential;
    // What was sent is a secret: its digest is remembered in its place.
    const key = hash('sha256', sent, 'base64');
    let claim = claims.get(key);
    if (!claim || clock() >= claim.until) {
      const claimed = read();
      if (claimed.kind === 'unknown') return network();
      claim = { name: ask(key, claimed, request), until: Infinity };
      claims.set(key, claim);
    }
    const { name } = claim;
    return name instanceof Promise ? name.then((found) => found ?? network()) : (name ?? network());
  };
}

function nameOf(caller: Caller): NamedCaller | undefined {
  if (caller.type === 'owner') return { bucket: `o ${caller.ownerId}`, known: true };
  return caller.type === 'agent' ? { bucket: `g ${caller.agentId}`, known: true } : undefined;
}
