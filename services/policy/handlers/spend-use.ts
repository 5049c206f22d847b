/** Lets a fetch through, or says why not. Nothing is spent by a fetch that is refused. */
import type { Handler, HandlerContext, InputOf } from '../../../shared/contract.ts';
import type { shares } from '../../../shared/contracts/shares.ts';
import { fail, type ErrorCode, type Failure } from '../../../shared/errors.ts';
import { eventOf, type EventFacts } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';
import { fitsFetch, openGrant, type Grant } from '../domain/grant.ts';
import { isExhausted } from '../domain/share.ts';

type Fetch = InputOf<typeof shares.spendUse>;

export const spendUse = (deps: Deps): Handler<typeof shares.spendUse> =>
  async function spendUse(fetch, context) {
    if (fetch.grant) {
      const grant = openGrant(fetch.grant, deps.keys.grant);
      if (!fitsFetch(grant, { ...fetch, now: deps.clock() })) throw await denyGrant(deps, grant, context, 'invalid_grant');
      return spendGrant(deps, fetch, grant, context);
    }
    if (fetch.shareId) return spendOpen(deps, { ...fetch, shareId: fetch.shareId }, context);
    throw await explainMissingShareId(deps, fetch, context);
  };

async function spendGrant(deps: Deps, fetch: Fetch, grant: Grant, context: HandlerContext) {
  const { store, clock } = deps;
  const { shareId, grantId, agentId } = grant;
  const facts = { shareId, agentId };
  const events = [
    eventOf(context, clock(), { ...facts, eventType: 'grant.redeemed', targetType: 'grant', targetId: grantId, data: { fetchId: fetch.fetchId } }),
    ...fetchEvents(deps, { ...fetch, shareId }, context, facts),
  ].map((event) => ({ ...event, actor: { type: 'agent', id: agentId } as const }));
  const spent = await store.spendGrant({ fetchId: fetch.fetchId, targetId: fetch.targetId, shareId, grantId, agentId }, events);
  if (spent === 'refused') throw await explainRefusedGrant(deps, grant, context);
  if (spent === 'grant_already_used') throw await denyGrant(deps, grant, context, 'grant_already_used');
  if (spent === 'fetch_returned') throw fail('service_unavailable', { retryAfter: 1 });
  return { shareId, spent: true, ...(spent.maxUses !== null && { remainingUses: spent.maxUses - spent.uses }) };
}

async function spendOpen(deps: Deps, fetch: Fetch & { shareId: string }, context: HandlerContext) {
  const { store, publish } = deps;
  const { shareId } = fetch;
  const events = fetchEvents(deps, fetch, context, { shareId });
  const found = await store.spendOpenUse(fetch, events);
  if (!found) throw fail('share_not_found_or_expired');
  const { ownerId, maxUses, uses } = found;
  if (found.mode === 'agent') throw deny(deps, context, { shareId, ownerId, code: 'grant_required' });
  if (maxUses === null) {
    // Nothing was spent, so nothing has to outlive a crash: told without the outbox.
    publish({ ...events[0]!, ownerId });
    return { shareId, spent: false };
  }
  if (uses === null) throw deny(deps, context, { shareId, ownerId, code: 'share_use_limit_exceeded' });
  return { shareId, spent: true, remainingUses: maxUses - uses };
}

function fetchEvents({ clock }: Deps, fetch: Fetch & { shareId: string }, context: HandlerContext, facts: Partial<EventFacts>) {
  const now = clock();
  return [
    eventOf(context, now, { ...facts, eventType: 'transfer.fetched', targetType: 'file', targetId: fetch.targetId, data: { fetchId: fetch.fetchId } }),
    eventOf(context, now, { ...facts, eventType: 'share.exhausted', targetType: 'share', targetId: fetch.shareId }),
  ];
}

/** The owner is looked up for the record alone: it is the owner who wants to know that a grant was refused. */
async function denyGrant(deps: Deps, { shareId, agentId }: Grant, context: HandlerContext, code: ErrorCode): Promise<Failure> {
  const share = await deps.store.findShare(shareId);
  return deny(deps, context, { shareId, agentId, ownerId: share?.ownerId ?? null, code });
}

/** Why a guarded spending matched nothing: the used grant first, since a retry with a new grant mends it. */
async function explainRefusedGrant(deps: Deps, grant: Grant, context: HandlerContext): Promise<Failure> {
  const { store } = deps;
  const { shareId, agentId } = grant;
  const [used, share] = await Promise.all([store.isGrantUsed(grant.grantId), store.findShare(shareId)]);
  const denied = { shareId, agentId, ownerId: share?.ownerId ?? null };
  if (used) return deny(deps, context, { ...denied, code: 'grant_already_used' });
  if (!share) return fail('share_not_found_or_expired');
  return deny(deps, context, { ...denied, code: isExhausted(share) ? 'share_use_limit_exceeded' : 'invalid_grant' });
}

/** A fetch by the transfer's id alone: what its share would need. */
async function explainMissingShareId(deps: Deps, { targetId }: Fetch, context: HandlerContext): Promise<Failure> {
  const share = await deps.store.findShareOfTarget(targetId);
  if (!share) return fail('transfer_not_found');
  if (share.mode === 'open') return fail('share_id_required');
  return deny(deps, context, { shareId: share.id, ownerId: share.ownerId, code: 'grant_required' });
}

function deny({ clock, publish }: Deps, context: HandlerContext, denied: { shareId: string; agentId?: string; ownerId: string | null; code: ErrorCode }): Failure {
  const { shareId, code, ...facts } = denied;
  const event = eventOf(context, clock(), {
    ...facts, eventType: 'share.denied', targetType: 'share', targetId: shareId, shareId, outcome: 'denied', code, data: { on: 'fetch' },
  });
  // A grant that opened names its agent: refused or let through, it is the agent who fetches.
  publish(denied.agentId ? { ...event, actor: { type: 'agent', id: denied.agentId } } : event);
  return fail(code);
}
