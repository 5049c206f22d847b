/** POST /api/owner/accounts: an owner beyond the first, made by one who is marked admin. */
import type { Handler } from '../../../shared/contract.ts';
import type { owners } from '../../../shared/contracts/owners.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { hashPassword } from '../domain/password.ts';

export const createOwner = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof owners.createOwner> =>
  async function createOwner({ email, password, admin }, context) {
    const session = context.caller.type === 'owner' ? await store.findSession(context.caller.sessionId) : undefined;
    if (!session) throw fail('owner_auth_required');
    if (!session.owner.admin) throw fail('forbidden', { detail: 'Only an owner marked admin may make another.' });
    const owner = { id: newId('owner'), email, admin };
    const event = eventOf(context, clock(), { eventType: 'owner.created', targetType: null, targetId: owner.id, data: { admin } });
    if (!(await store.createOwner({ ...owner, passwordHash: await hashPassword(password) }, event))) throw fail('owner_email_taken');
    return { owner };
  };
