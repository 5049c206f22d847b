/** Signing in at an OpenID Connect provider: the way there, and the way back (interface chapter: Authentication). */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Handler, HandlerContext } from '../../../shared/contract.ts';
import type { owners } from '../../../shared/contracts/owners.ts';
import { fail, Failure } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { flowOf, flowTtl, isOfDomains, isStateOf, openFlow, sealFlow, type Flow } from '../domain/oidc-flow.ts';
import type { Identity, Provider } from '../outside/oidc.ts';
import type { Subject } from '../store/oidc.ts';
import type { Owner } from '../store/owners.ts';
import { newSession, replacedBy } from './owner-session.ts';

/** The provider of a deployment that has one. */
export interface Oidc {
  readonly provider: Provider;
  /** Domains whose e-mails may sign in; any when empty. */
  readonly domains: readonly string[];
}

export const startOidc = ({ clock, keys }: Deps, oidc: Oidc | undefined): Handler<typeof owners.startOidc> =>
  async function startOidc(_input, context) {
    if (!oidc) throw fail('route_not_found');
    const secret = randomBytes(32).toString('base64url');
    try {
      return { location: await oidc.provider.authorizationUrl(flowOf(secret)), flow: sealFlow(secret, clock(), keys.oidcFlow), seconds: flowTtl };
    } catch (error) {
      if (error instanceof Failure) noteReason(context, error);
      throw error;
    }
  };

export const finishOidc = (deps: Deps, oidc: Oidc | undefined): Handler<typeof owners.finishOidc> =>
  async function finishOidc({ flow: token, ...returned }, context) {
    if (!oidc) throw fail('route_not_found');
    const { store, clock, limits } = deps;
    try {
      const flow = await claimFlow(deps, token, returned.state);
      const { email, ...subject } = admit(await oidc.provider.identify(returned, flow), oidc.domains);
      const owner = await findOrMakeOwner(deps, { ...subject, email }, context);
      const { session, token: shown, caller } = newSession(owner.id, limits.sessionTtl);
      const event = eventOf({ ...context, caller }, clock(), { eventType: 'owner.signed_in', targetType: null, targetId: null, data: { by: 'oidc' } });
      const expiresAt = await store.openSession(session, subject, event, replacedBy(context, clock()));
      if (!expiresAt) throw fail('invalid_owner_credential');
      return { owner, token: shown, expiresAt: expiresAt.toISOString() };
    } catch (error) {
      if (error instanceof Failure) {
        noteReason(context, error);
        tellDenied(deps, context, error);
      }
      throw error;
    }
  };

/** Promise: a sign-in comes back to the browser that began it, soon, and once. */
async function claimFlow({ store, clock, keys }: Deps, token: string | undefined, state: string | undefined): Promise<Flow> {
  const flow = token === undefined ? undefined : openFlow(token, clock(), keys.oidcFlow);
  if (!flow || !isStateOf(flow, state) || !(await store.claimReturn(flow.id))) throw fail('invalid_oidc_callback');
  return flow;
}

/** Whom the deployment lets in: an e-mail that the provider has verified, of a domain that is allowed. */
function admit({ issuer, subject, email, emailVerified }: Identity, domains: readonly string[]): Subject & { email: string } {
  const { data } = z.email().max(320).safeParse(email);
  if (!data || !emailVerified) throw fail('oidc_sign_in_refused', { detail: 'The provider does not vouch for an e-mail address of yours.' });
  if (!isOfDomains(data, domains)) throw fail('oidc_sign_in_refused', { detail: 'E-mail addresses of this domain may not sign in here.' });
  return { issuer, subject, email: data };
}

/** Promise: an account with a password is never taken over by its e-mail. Of first sign-ins that race, one makes the owner and both find it. */
async function findOrMakeOwner({ store, clock }: Deps, { email, ...subject }: Subject & { email: string }, context: HandlerContext): Promise<Owner> {
  const found = await store.findOwnerBySubject(subject);
  if (found) return found;
  const owner = { id: newId('owner'), email, admin: false };
  const caller = { type: 'owner', ownerId: owner.id, sessionId: '' } as const;
  const event = eventOf({ ...context, caller }, clock(), { eventType: 'owner.created', targetType: null, targetId: owner.id, data: { admin: false, by: 'oidc' } });
  if (await store.createOwnerOfSubject({ ...owner, ...subject }, event)) return owner;
  const made = await store.findOwnerBySubject(subject);
  if (!made) throw fail('owner_email_taken', { detail: 'An account with this e-mail exists already. Sign in to it in the way it was made.' });
  return made;
}

/** For whoever runs the exchange: the library's own words and codes. Nothing that the provider sent, since that may hold a token. */
function noteReason({ log }: HandlerContext, { code, cause }: Failure): void {
  if (!(cause instanceof Error)) return;
  const codeOf = (error: unknown) => (error as { code?: unknown } | undefined)?.code;
  log.warn({ code, reason: cause.message, reasonCode: codeOf(cause), causeCode: codeOf((cause.cause as Error | undefined)?.cause ?? cause.cause) }, 'a sign-in at the provider failed');
}

function tellDenied({ publish, clock }: Deps, context: HandlerContext, { code }: Failure): void {
  publish(eventOf(context, clock(), { eventType: 'owner.denied', targetType: null, targetId: null, outcome: 'denied', code, data: { by: 'oidc' } }));
}
