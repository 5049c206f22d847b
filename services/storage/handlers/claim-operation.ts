/** An idempotency key belongs to the first request that came with it. */
import { fail } from '../../../shared/errors.ts';
import type { Operation } from '../../../shared/operation.ts';
import type { Deps } from '../deps.ts';

/** @throws idempotency_key_reused when the key came with another request before */
export async function claimOperation({ store }: Pick<Deps, 'store'>, operation: Operation): Promise<void> {
  if (!(await store.claimOperation(operation))) throw fail('idempotency_key_reused');
}
