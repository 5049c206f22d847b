/** The last step of every lane: the share is created, and only then is anybody told the transfer's id. */
import type { RequestContext } from '../../../shared/contract.ts';
import { shares } from '../../../shared/contracts/shares.ts';
import type { CallContext } from '../../../shared/rpc.ts';
import { makeDeleteToken } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import type { Transfer } from '../domain/transfer.ts';

/** The part of a request that goes along to the policy service when storage acts by itself. */
export function ownContext({ requestId, traceparent, deadline, address }: RequestContext): CallContext {
  return { requestId, traceparent, deadline, ...(address && { address }) };
}

/** Has the share created, which may be repeated, and answers the upload response, which is the same every time. */
export async function releaseTransfer(deps: Pick<Deps, 'bus' | 'settled' | 'baseUrl' | 'keys'>, transfer: Transfer, context: RequestContext) {
  // A replay for a transfer that has ended must not bring its share to life.
  if (!transfer.endedAt) {
    await createShare(deps.bus, transfer, ownContext(context));
    deps.settled.note(transfer.id);
  }
  const { id, shareId, expiresAt } = transfer;
  return {
    id,
    shareId,
    shareUrl: `${deps.baseUrl}/s/${shareId}`,
    downloadUrl: `${deps.baseUrl}/api/dl/${id}?share_id=${shareId}`,
    expiresAt: expiresAt.toISOString(),
    deleteToken: makeDeleteToken(id, deps.keys.deleteToken),
  };
}

export async function createShare(bus: Deps['bus'], transfer: Transfer, context: CallContext): Promise<void> {
  const { id, shareId, kind, filename, mimeType, ownerId, agentId, release, expiresAt } = transfer;
  await bus.call(shares.createShare, {
    shareId, targetType: kind, targetId: id, target: { filename, mimeType, ...(kind === 'file' && { size: transfer.size }) }, creator: { ownerId, agentId }, release, expiresAt: expiresAt.toISOString(),
  }, context);
}
