/** Shares by their owner or the agent that created them: list, change, revoke (interface chapter: Policy). */
import type { Handler, HandlerContext, InputOf, OutputOf } from '../../../shared/contract.ts';
import type { shares } from '../../../shared/contracts/shares.ts';
import { transfers } from '../../../shared/contracts/transfers.ts';
import { fail, Failure } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';
import { changedFields, checkChanges, needsBytesUntil, sharesOf, type Changes, type OwnShare } from '../domain/own-share.ts';
import { openShareCursor, sealShareCursor } from '../domain/share-cursor.ts';
import { remainingUses } from '../domain/share.ts';
import { describe } from './resolve-share.ts';

export const listShares = ({ store, keys }: Deps): Handler<typeof shares.listShares> =>
  async function listShares({ limit, cursor, ...filters }, { caller }) {
    const whose = sharesOf(caller);
    const walk = { whose, filters };
    const after = cursor === undefined ? undefined : openShareCursor(cursor, walk, keys.shareCursor);
    if (cursor !== undefined && !after) throw fail('invalid_cursor');
    // One row more than the page holds tells whether there is a next page.
    const rows = await store.listShares({ whose, filters, after, limit: limit + 1 });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const nextCursor = rows.length > page.length && last ? sealShareCursor(last.position, walk, keys.shareCursor) : null;
    return { count: page.length, shares: page.map(describeOwn), nextCursor };
  };

export const updateShare = (deps: Deps): Handler<typeof shares.updateShare> =>
  async function updateShare(input, context) {
    const { store, clock, limits } = deps;
    const whose = sharesOf(context.caller);
    const changes = changesOf(input);
    // Fetches go on meanwhile: where one made the check untrue, it is made again.
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const share = await store.findOwnShare(input.shareId, whose);
      if (!share) throw fail('share_not_found_or_expired');
      checkChanges(share, changes, { now: clock(), maxTtl: limits.ttl.max });
      const changed = changedFields(share, changes);
      if (changed.length === 0) return describeOwn(share);
      // The bytes first: a crash in between leaves bytes without a use for them, never a share without its bytes.
      const keptUntil = await keepBytes(deps, { share, changes }, context);
      const event = eventOf(context, clock(), {
        eventType: 'share.updated', targetType: 'share', targetId: share.id, shareId: share.id,
        data: factsOf(changed, changes),
      });
      const updated = await store.updateShare(share.id, whose, { changes, keptUntil }, event);
      if (updated) return describeOwn(updated);
    }
    throw fail('service_unavailable', { retryAfter: 1 });
  };

export const revokeShare = ({ store, clock }: Deps): Handler<typeof shares.revokeShare> =>
  async function revokeShare({ shareId }, context) {
    const event = eventOf(context, clock(), { eventType: 'share.revoked', targetType: 'share', targetId: shareId, shareId });
    if (!(await store.revokeShare(shareId, sharesOf(context.caller), event))) throw fail('share_not_found_or_expired');
    return { id: shareId, revoked: true };
  };

function changesOf({ expiresAt, maxUses, allowedAgentIds, metadata }: InputOf<typeof shares.updateShare>): Changes {
  return { expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt), maxUses, allowedAgentIds, metadata };
}

/** Has storage keep the bytes as long as the share is to live. Answers until when they are kept for certain. */
async function keepBytes({ bus }: Deps, { share, changes }: { share: OwnShare; changes: Changes }, context: HandlerContext): Promise<Date> {
  const until = needsBytesUntil(share, changes);
  if (!until) return share.targetExpiresAt;
  const { requestId, traceparent, deadline } = context;
  const kept = await bus.call(transfers.keepTransfer, { id: share.targetId, until: until.toISOString() }, { requestId, traceparent, deadline }).catch((error: unknown) => {
    throw error instanceof Failure && error.code === 'transfer_not_found' ? fail('share_not_found_or_expired', {}, error) : error;
  });
  return new Date(kept.expiresAt);
}

/** For the record: which fields changed. Labels and agents may be anything and many, so only that they changed. */
function factsOf(fields: string[], { expiresAt, maxUses }: Changes): Record<string, unknown> {
  return {
    fields,
    ...(fields.includes('expiresAt') && { expiresAt: expiresAt!.toISOString() }),
    ...(fields.includes('maxUses') && { maxUses }),
  };
}

function describeOwn(share: OwnShare): OutputOf<typeof shares.updateShare> {
  const remaining = remainingUses(share);
  return {
    ...describe(share), state: share.state, uses: share.uses,
    ...(remaining !== undefined && { remainingUses: remaining }),
    createdAt: share.createdAt.toISOString(),
  };
}
