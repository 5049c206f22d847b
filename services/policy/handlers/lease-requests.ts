/** Leases a gateway a part of what a caller may send in its present window. */
import type { Handler } from '../../../shared/contract.ts';
import type { rates } from '../../../shared/contracts/rates.ts';
import type { Deps } from '../deps.ts';
import { roomOf, waitOf } from '../domain/rate-window.ts';

export const leaseRequests = ({ store }: Pick<Deps, 'store'>): Handler<typeof rates.leaseRequests> =>
  async function leaseRequests(asked) {
    const { granted, ...present } = await store.leaseRequests(asked);
    return {
      granted,
      left: roomOf(present, asked),
      // Rounded down: a lease never outlives its window.
      endsInMs: Math.max(0, Math.floor((asked.window - present.elapsed) * 1_000)),
      waitMs: Math.ceil(waitOf(present, asked) * 1_000),
    };
  };
