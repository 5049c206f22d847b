/** GET /api/share/{shareId}: a share's metadata and policy, for whoever its policy lets see it. */
import type { Handler, OutputOf } from '../../../shared/contract.ts';
import type { shares } from '../../../shared/contracts/shares.ts';
import { fail, type ErrorCode } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';
import { allowsAgent, type Share } from '../domain/share.ts';

export const resolveShare = ({ store, clock, publish }: Deps): Handler<typeof shares.resolveShare> =>
  async function resolveShare({ shareId }, context) {
    const share = await store.findShare(shareId);
    if (!share) throw fail('share_not_found_or_expired');
    const facts = { targetType: 'share', targetId: share.id, shareId: share.id, ownerId: share.ownerId } as const;

    const refuse = (code: ErrorCode) => {
      publish(eventOf(context, clock(), { ...facts, eventType: 'share.denied', outcome: 'denied', code, data: { on: 'resolve' } }));
      return fail(code);
    };
    if (share.mode === 'agent') {
      if (context.caller.type !== 'agent') throw refuse('agent_auth_required');
      if (!allowsAgent(share, context.caller.agentId)) throw refuse('agent_not_allowed_for_share');
    }
    publish(eventOf(context, clock(), { ...facts, eventType: 'share.resolved' }));
    return describe(share);
  };

/** A share as resolving it shows it. */
export function describe(share: Share): OutputOf<typeof shares.resolveShare> {
  const expiresAt = share.expiresAt.toISOString();
  return {
    id: share.id, shareId: share.id, type: share.targetType, targetId: share.targetId, ...describeTarget(share),
    policy: {
      mode: share.mode, allowedAgentIds: [...share.allowedAgentIds], expiresAt,
      ...(share.maxUses !== null && { maxUses: share.maxUses }),
      metadata: share.metadata,
      ...(share.passcodeHash !== null && { passcodeRequired: true as const }),
    },
    createdByUserId: share.ownerId, createdByAgentId: share.agentId, authMode: share.mode,
  };
}

/** The fields of its own that each type of share has. */
function describeTarget({ targetType, targetId, filename, mimeType, size, expiresAt }: Share) {
  switch (targetType) {
    case 'file': return { fileId: targetId, pipeId: targetId, filename, mimeType, ...(size !== null && { size }), expiresAt: expiresAt.toISOString() };
    case 'pipe': return { pipeId: targetId };
    case 'folder': return { folderId: targetId };
  }
}
