/** GET and HEAD /api/dl/{id}: a transfer's headers, and its bytes or where they are. Whether the caller may have them, policy says. */
import { attachedBytes, type Handler } from '../../../shared/contract.ts';
import type { transfers } from '../../../shared/contracts/transfers.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';

export const openTransfer = ({ store, blobs }: Deps): Handler<typeof transfers.openTransfer> =>
  async function openTransfer({ id, metadataOnly }) {
    const transfer = await store.openTransfer(id, !metadataOnly);
    if (!transfer) throw fail('transfer_not_found');
    const { kind: type, filename, mimeType, size, sha256, createdAt, segments, bytes } = transfer;
    return {
      type, filename, mimeType, size, createdAt: createdAt.toISOString(),
      ...(sha256 && { sha256 }),
      ...(segments && !metadataOnly && { ticket: await blobs.ticketToRead(segments) }),
      ...(bytes && { [attachedBytes]: bytes }),
    };
  };
