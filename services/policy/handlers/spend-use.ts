/** Lets a fetch through, or says why not. Nothing is spent by a fetch that is refused. */
import type { Handler, HandlerContext, InputOf, OutputOf } from '../../../shared/contract.ts';
import type { shares } from '../../../shared/contracts/shares.ts';
import { fail, type ErrorCode, type Failure, type FailureDetails } from '../../../shared/errors.ts';
import { eventOf, type EventFacts } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';
import { fitsFetch, openGrant, type Grant } from '../domain/grant.ts';
import { isExhausted } from '../domain/share.ts';
import { makeCheckPasscode } from './check-passcode.ts';

type Fetch = InputOf<typeof shares.spendUse>;
type Spent = OutputOf<typeof shares.spendUse>;

/** A fetch of one share, with the hash that its passcode was checked against. */
type ShareFetch = Fetch & { readonly shareId: string; readonly passcodeHash?: string };

/** Why nothing was spent yet: the share has a passcode. */
interface Locked {
  readonly passcodeHash: string;
  readonly ownerId: string | null;
  readonly agentId?: string;
}

/** Promise: a passcode is checked before anything is spent. It is looked for only where spending found that there is one. */
export const spendUse = (deps: Deps): Handler<typeof shares.spendUse> => {
  const checkPasscode = makeCheckPasscode(deps);
  return async function spendUse(fetch, context) {
    const { shareId, spend } = await spendingOf(deps, fetch, context);
    const first = await spend();
    if (!('passcodeHash' in first)) return first;
    const { passcodeHash, ...owner } = first;
    const refuse = (code: ErrorCode, details?: FailureDetails) => deny(deps, context, { ...owner, shareId, code }, details);
    await checkPasscode({ shareId, passcodeHash, passcode: fetch.passcode, refuse }, context);
    const second = await spend(passcodeHash);
    if ('passcodeHash' in second) throw fail('internal');
    return second;
  };
};

/** How this fetch spends: a grant where it has one, a use of its share otherwise. */
async function spendingOf(deps: Deps, fetch: Fetch, context: HandlerContext) {
  if (fetch.grant) {
    const grant = openGrant(fetch.grant, deps.keys.grant);
    if (!fitsFetch(grant, { ...fetch, now: deps.clock() })) throw await denyGrant(deps, grant, context, 'invalid_grant');
    const { shareId } = grant;
    return { shareId, spend: (passcodeHash?: string) => spendGrant(deps, { ...fetch, shareId, ...(passcodeHash && { passcodeHash }) }, grant, context) };
  }
  const shareId = fetch.shareId ?? (fetch.ownShare ? (await deps.store.findShareOfTarget(fetch.targetId))?.id : undefined);
  if (!shareId) throw await explainMissingShareId(deps, fetch, context);
  return { shareId, spend: (passcodeHash?: string) => spendOpen(deps, { ...fetch, shareId, ...(passcodeHash && { passcodeHash }) }, context) };
}

async function spendGrant(deps: Deps, fetch: ShareFetch, grant: Grant, context: HandlerContext): Promise<Spent | Locked> {
  const { store, clock } = deps;
  const { shareId, grantId, agentId } = grant;
  const facts = { shareId, agentId };
  const events = [
    eventOf(context, clock(), { ...facts, eventType: 'grant.redeemed', targetType: 'grant', targetId: grantId, data: { fetchId: fetch.fetchId } }),
    ...fetchEvents(deps, fetch, context, facts),
  ].map((event) => ({ ...event, actor: { type: 'agent', id: agentId } as const }));
  const { fetchId, targetId, passcodeHash } = fetch;
  const spent = await store.spendGrant({ fetchId, targetId, shareId, grantId, agentId, ...(passcodeHash && { passcodeHash }) }, events);
  if (spent === 'refused') return explainRefusedGrant(deps, { grant, passcodeHash }, context);
  if (spent === 'grant_already_used') throw await denyGrant(deps, grant, context, 'grant_already_used');
  if (spent === 'fetch_returned') throw fail('service_unavailable', { retryAfter: 1 });
  return { shareId, spent: true, ...(spent.maxUses !== null && { remainingUses: spent.maxUses - spent.uses }) };
}

async function spendOpen(deps: Deps, fetch: ShareFetch, context: HandlerContext): Promise<Spent | Locked> {
  const { store, publish } = deps;
  const { shareId } = fetch;
  const events = fetchEvents(deps, fetch, context, { shareId });
  const found = await store.spendOpenUse(fetch, events);
  if (!found) throw fail('share_not_found_or_expired');
  if (found === 'fetch_returned') throw fail('service_unavailable', { retryAfter: 1 });
  const { ownerId, maxUses, uses, passcodeHash } = found;
  if (found.mode === 'agent') throw deny(deps, context, { shareId, ownerId, code: 'grant_required' });
  if (passcodeHash !== null && passcodeHash !== fetch.passcodeHash) return { passcodeHash, ownerId };
  if (maxUses === null) {
    // Nothing was spent, so nothing has to outlive a crash: told without the outbox.
    publish({ ...events[0]!, ownerId, targetType: found.targetType });
    return { shareId, spent: false };
  }
  if (uses === null) return explainRefusedUse(deps, fetch, context);
  return { shareId, spent: true, remainingUses: maxUses - uses };
}

/** No use was left, unless the share ended or lost its cap at that very moment. */
async function explainRefusedUse(deps: Deps, fetch: ShareFetch, context: HandlerContext): Promise<Spent | Locked> {
  const { shareId } = fetch;
  const share = await deps.store.findShare(shareId);
  if (!share) throw fail('share_not_found_or_expired');
  if (share.maxUses === null) return spendOpen(deps, fetch, context);
  throw deny(deps, context, { shareId, ownerId: share.ownerId, code: 'share_use_limit_exceeded' });
}

function fetchEvents({ clock }: Deps, fetch: Fetch & { shareId: string }, context: HandlerContext, facts: Partial<EventFacts>) {
  const now = clock();
  return [
    eventOf(context, now, { ...facts, eventType: 'transfer.fetched', targetType: 'file', targetId: fetch.targetId, data: { fetchId: fetch.fetchId, ...(fetch.fileId && { fileId: fetch.fileId }) } }),
    eventOf(context, now, { ...facts, eventType: 'share.exhausted', targetType: 'share', targetId: fetch.shareId }),
  ];
}

/** The owner is looked up for the record alone: it is the owner who wants to know that a grant was refused. */
async function denyGrant(deps: Deps, { shareId, agentId }: Grant, context: HandlerContext, code: ErrorCode): Promise<Failure> {
  const share = await deps.store.findShare(shareId);
  return deny(deps, context, { shareId, agentId, ownerId: share?.ownerId ?? null, code });
}

/** Why a guarded spending matched nothing: the used grant first, since a retry with a new grant mends it. */
async function explainRefusedGrant(deps: Deps, { grant, passcodeHash }: { grant: Grant; passcodeHash: string | undefined }, context: HandlerContext): Promise<Locked> {
  const { store } = deps;
  const { shareId, agentId } = grant;
  const [used, share] = await Promise.all([store.isGrantUsed(grant.grantId), store.findShare(shareId)]);
  const denied = { shareId, agentId, ownerId: share?.ownerId ?? null };
  if (used) throw deny(deps, context, { ...denied, code: 'grant_already_used' });
  if (!share) throw fail('share_not_found_or_expired');
  if (share.passcodeHash !== null && share.passcodeHash !== passcodeHash) return { passcodeHash: share.passcodeHash, ownerId: share.ownerId, agentId };
  throw deny(deps, context, { ...denied, code: isExhausted(share) ? 'share_use_limit_exceeded' : 'invalid_grant' });
}

/** A fetch by the transfer's id alone: what its share would need. */
async function explainMissingShareId(deps: Deps, { targetId }: Fetch, context: HandlerContext): Promise<Failure> {
  const share = await deps.store.findShareOfTarget(targetId);
  if (!share) return fail('transfer_not_found');
  if (share.mode === 'open') return fail('share_id_required');
  return deny(deps, context, { shareId: share.id, ownerId: share.ownerId, code: 'grant_required' });
}

function deny({ clock, publish }: Deps, context: HandlerContext, denied: { shareId: string; agentId?: string; ownerId: string | null; code: ErrorCode }, details?: FailureDetails): Failure {
  const { shareId, code, ...facts } = denied;
  const event = eventOf(context, clock(), {
    ...facts, eventType: 'share.denied', targetType: 'share', targetId: shareId, shareId, outcome: 'denied', code, data: { on: 'fetch' },
  });
  // A grant that opened names its agent: refused or let through, it is the agent who fetches.
  publish(denied.agentId ? { ...event, actor: { type: 'agent', id: denied.agentId } } : event);
  return fail(code, details);
}
