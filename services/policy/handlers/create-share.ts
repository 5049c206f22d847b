/** Creates the share of a transfer whose bytes are final. Storage may ask again; the share is made once. */
import type { Handler } from '../../../shared/contract.ts';
import type { shares } from '../../../shared/contracts/shares.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';

export const createShare = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof shares.createShare> =>
  async function createShare({ shareId, targetType, targetId, target, creator, release, expiresAt }, context) {
    const { ownerId, agentId } = creator;
    const event = eventOf(context, clock(), {
      eventType: 'share.created', targetType: 'share', targetId: shareId, shareId, ownerId, agentId,
      data: { transferId: targetId, mode: release.mode, expiresAt, ...(release.maxUses && { maxUses: release.maxUses }) },
    });
    await store.createShare({
      id: shareId, targetType, targetId, ...target, size: target.size ?? null,
      mode: release.mode, allowedAgentIds: release.allowedAgentIds, maxUses: release.maxUses ?? null, metadata: release.metadata,
      ownerId, agentId, expiresAt: new Date(expiresAt), passcodeHash: release.passcodeHash ?? null,
    }, { ...event, actor: creatorActor(creator) });
    return { shareId };
  };

/** The request came from storage; the one who acted is the sender. */
function creatorActor({ ownerId, agentId }: { ownerId: string | null; agentId: string | null }) {
  if (agentId) return { type: 'agent', id: agentId } as const;
  if (ownerId) return { type: 'owner', id: ownerId } as const;
  return { type: 'anonymous', id: null } as const;
}
