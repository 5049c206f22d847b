/** GET and HEAD /api/dl/{id}: a transfer's headers, and its bytes or where they are. Whether the caller may have them, policy says. */
import { attachedBytes, type Handler } from '../../../shared/contract.ts';
import type { transfers } from '../../../shared/contracts/transfers.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';

export const openTransfer = ({ store }: Deps): Handler<typeof transfers.openTransfer> =>
  async function openTransfer({ id, metadataOnly }) {
    const transfer = await store.openTransfer(id, !metadataOnly);
    if (!transfer) throw fail('transfer_not_found');
    const { kind: type, filename, mimeType, size, sha256, createdAt, segments, bytes } = transfer;
    const live = type === 'pipe' && !segments;
    return {
      type, filename, mimeType, size, createdAt: createdAt.toISOString(),
      // A digest that was promised is one of the bytes only once they are there.
      ...(sha256 && !live && { sha256 }),
      ...(live && { live }),
      ...(segments && { ticket: { driver: 'fs' as const, segments } }),
      ...(bytes && { [attachedBytes]: bytes }),
    };
  };
