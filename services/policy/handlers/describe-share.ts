/** What the page of a share shows. It spends nothing and names no agent. */
import type { Handler } from '../../../shared/contract.ts';
import type { shares } from '../../../shared/contracts/shares.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { remainingUses } from '../domain/share.ts';

export const describeShare = ({ store }: Pick<Deps, 'store'>): Handler<typeof shares.describeShare> =>
  async function describeShare({ shareId }) {
    const share = await store.findShare(shareId);
    if (!share) throw fail('share_not_found_or_expired');
    const remaining = remainingUses(share);
    return {
      shareId: share.id, type: share.targetType, targetId: share.targetId,
      filename: share.filename, mimeType: share.mimeType,
      ...(share.size !== null && { size: share.size }),
      mode: share.mode, expiresAt: share.expiresAt.toISOString(),
      ...(share.maxUses !== null && { maxUses: share.maxUses }),
      ...(share.passcodeHash !== null && { passcodeRequired: true as const }),
      ...(remaining !== undefined && { remainingUses: remaining }),
    };
  };
