/** An owner's sessions: sign in, who is signed in, sign out here and everywhere, another password (interface chapter: Authentication). */
import { randomBytes } from 'node:crypto';
import type { Caller, Handler, HandlerContext } from '../../../shared/contract.ts';
import type { owners } from '../../../shared/contracts/owners.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { randomText } from '../../../shared/ids.ts';
import { hashSecret } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { hashPassword } from '../domain/password.ts';
import { ownerOf } from '../domain/owner.ts';
import type { NewSession, ReplacedSession } from '../store/sessions.ts';
import type { CheckPassword } from './check-password.ts';

/** A session to be opened, and its token, which is shown once. */
export function newSession(ownerId: string, ttl: number): { session: NewSession; token: string; caller: Caller } {
  const id = randomText(16);
  const secret = randomBytes(32).toString('base64url');
  return {
    session: { id, ownerId, secretHash: hashSecret(secret), ttl },
    token: `aos_${id}.${secret}`,
    caller: { type: 'owner', ownerId, sessionId: id },
  };
}

/** The session of the cookie that came with a sign-in: none survives a change of who is signed in. */
export function replacedBy(context: HandlerContext, now: number): ReplacedSession | undefined {
  const { credential } = context;
  if (credential?.kind !== 'owner_session') return undefined;
  const event = eventOf(context, now, { eventType: 'owner.signed_out', targetType: null, targetId: null, data: { replaced: true } });
  return { id: credential.sessionId, secretHash: credential.secretHash, event };
}

export const signIn = ({ store, clock, limits }: Deps, checkPassword: CheckPassword): Handler<typeof owners.signIn> =>
  async function signIn({ email, password }, context) {
    const find = () => store.findOwnerByEmail(email);
    const { passwordHash, ...owner } = await checkPassword({ email, password, find, wrong: 'invalid_owner_credential' }, context);
    const { session, token, caller } = newSession(owner.id, limits.sessionTtl);
    const event = eventOf({ ...context, caller }, clock(), { eventType: 'owner.signed_in', targetType: null, targetId: null });
    const expiresAt = await store.openSession(session, { passwordHash }, event, replacedBy(context, clock()));
    if (!expiresAt) throw fail('invalid_owner_credential');
    return { owner, token, expiresAt: expiresAt.toISOString() };
  };

export const changePassword = ({ store, clock, limits }: Deps, checkPassword: CheckPassword): Handler<typeof owners.changePassword> =>
  async function changePassword({ currentPassword, newPassword }, context) {
    if (context.caller.type !== 'owner') throw fail('owner_auth_required');
    const { sessionId, ownerId } = context.caller;
    const present = await store.findOwner(ownerId);
    if (!present) throw fail('invalid_owner_credential');
    if (!present.passwordHash) throw fail('password_not_set');
    const find = () => store.findOwner(ownerId);
    const { passwordHash, ...owner } = await checkPassword({ email: present.email, password: currentPassword, find, wrong: 'invalid_password' }, context);
    const { session, token, caller } = newSession(ownerId, limits.sessionTtl);
    const event = eventOf({ ...context, caller }, clock(), { eventType: 'owner.password_changed', targetType: null, targetId: null });
    const expiresAt = await store.changePassword({ from: passwordHash, to: await hashPassword(newPassword), askedBy: sessionId, session }, event);
    // Another change was faster, and with it this session has ended.
    if (!expiresAt) throw fail('invalid_owner_credential');
    return { owner, token, expiresAt: expiresAt.toISOString() };
  };

export const readSession = ({ store }: Pick<Deps, 'store'>): Handler<typeof owners.readSession> =>
  async function readSession(_input, { caller }) {
    const session = caller.type === 'owner' ? await store.findSession(caller.sessionId) : undefined;
    if (!session) throw fail('owner_auth_required');
    return { owner: session.owner, expiresAt: session.expiresAt.toISOString() };
  };

export const signOut = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof owners.signOut> =>
  async function signOut(_input, context) {
    if (context.caller.type !== 'owner') throw fail('owner_auth_required');
    const event = eventOf(context, clock(), { eventType: 'owner.signed_out', targetType: null, targetId: null });
    await store.endSession(context.caller.sessionId, event);
    return { signedOut: true };
  };

export const signOutEverywhere = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof owners.signOutEverywhere> =>
  async function signOutEverywhere(_input, context) {
    const event = eventOf(context, clock(), { eventType: 'owner.signed_out', targetType: null, targetId: null, data: { everywhere: true } });
    return { ended: await store.endSessions(ownerOf(context.caller), event) };
  };
