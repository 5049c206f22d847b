/** What the importer does by itself: settles runs whose process is gone, and forgets what nobody can ask for any more. */
import { transfers } from '../../shared/contracts/transfers.ts';
import { Failure } from '../../shared/errors.ts';
import { eventOfService } from '../../shared/events.ts';
import { sweepContext, type SweepSteps } from '../../shared/sweeper.ts';
import type { Deps } from './deps.ts';
import type { AbandonedImport } from './store/imports.ts';

const batchSize = 100;

export function sweepSteps(deps: Deps): SweepSteps {
  return {
    settleAbandoned: () => settleAbandoned(deps),
    purgeImports: () => deps.store.purgeImports(deps.limits.keepEndedSeconds),
  };
}

async function settleAbandoned(deps: Deps): Promise<void> {
  for (const run of await deps.store.findAbandoned(batchSize)) await settle(deps, run);
}

/** Promise: what the record says of an import whose process died is what became of it: storage knows whether its transfer exists. */
async function settle({ bus, store, clock }: Deps, run: AbandonedImport): Promise<void> {
  const { transferId: targetId, shareId, ownerId, agentId, host } = run;
  const transfer = await bus.call(transfers.openTransfer, { id: targetId, metadataOnly: true }, sweepContext()).catch((error: unknown) => {
    if (error instanceof Failure && error.code === 'transfer_not_found') return undefined;
    throw error;
  });
  const about = { targetType: 'file', targetId, ownerId, agentId } as const;
  const event = transfer
    ? eventOfService('importer', clock(), { eventType: 'import.completed', shareId, data: { host, size: transfer.size }, ...about })
    : eventOfService('importer', clock(), { eventType: 'import.failed', outcome: 'error', code: 'service_unavailable', data: { host }, ...about });
  await store.endImport(run, transfer ? 'completed' : 'failed', event);
}
