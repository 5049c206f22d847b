/** An owner's session: sign in, who is signed in, sign out (interface chapter: Authentication). */
import { randomBytes } from 'node:crypto';
import type { Handler } from '../../../shared/contract.ts';
import type { owners } from '../../../shared/contracts/owners.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { randomText } from '../../../shared/ids.ts';
import { hashSecret } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { isPassword } from '../domain/password.ts';

export const signIn = ({ store, clock, limits, publish }: Deps): Handler<typeof owners.signIn> =>
  async function signIn({ email, password }, context) {
    const found = await store.findOwnerByEmail(email);
    if (!(await isPassword(password, found?.passwordHash)) || !found) {
      publish(eventOf(context, clock(), {
        eventType: 'owner.denied', targetType: null, targetId: null, ownerId: found?.id ?? null, outcome: 'denied', code: 'invalid_owner_credential',
      }));
      throw fail('invalid_owner_credential');
    }
    const { passwordHash: _secret, ...owner } = found;
    const id = randomText(16);
    const secret = randomBytes(32).toString('base64url');
    const event = eventOf({ ...context, caller: { type: 'owner', ownerId: owner.id, sessionId: id } }, clock(), {
      eventType: 'owner.signed_in', targetType: null, targetId: null,
    });
    const expiresAt = await store.openSession({ id, ownerId: owner.id, secretHash: hashSecret(secret), ttl: limits.sessionTtl }, event);
    return { owner, token: `aos_${id}.${secret}`, expiresAt: expiresAt.toISOString() };
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
