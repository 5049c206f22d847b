/** Keeps the bytes of a transfer longer, for its share. It only ever extends, so that asking twice, late or in another order does no harm. */
import type { Handler } from '../../../shared/contract.ts';
import type { transfers } from '../../../shared/contracts/transfers.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';

export const keepTransfer = ({ store }: Pick<Deps, 'store'>): Handler<typeof transfers.keepTransfer> =>
  async function keepTransfer({ id, until }) {
    const expiresAt = await store.keepTransfer(id, new Date(until));
    if (!expiresAt) throw fail('transfer_not_found');
    return { expiresAt: expiresAt.toISOString() };
  };
