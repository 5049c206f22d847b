/** Holds an import's lease while it runs, and says when it was lost. */
import { fail } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { Run, Store } from './store/imports.ts';

export interface Lease {
  /** Aborted when another run has the import. */
  readonly lost: AbortSignal;
  release(): void;
}

/** Renews the lease three times in its length. While the database is away nobody else can take it either. */
export function holdLease(store: Pick<Store, 'renewLease'>, run: Run, { seconds, log }: { seconds: number; log: Logger }): Lease {
  const controller = new AbortController();
  const renew = async () => {
    const held = await store.renewLease(run, seconds).catch((error: unknown) => {
      log.warn({ err: error }, 'the lease of an import could not be renewed yet');
      return true;
    });
    if (!held) controller.abort(fail('operation_in_progress', { retryAfter: 1 }));
  };
  const timer = setInterval(() => void renew(), (seconds * 1_000) / 3);
  return { lost: controller.signal, release: () => clearInterval(timer) };
}
