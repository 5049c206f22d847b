/** PUT /api/lane/single/{planId}, after the body: makes the written bytes a transfer with its share. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads, Written } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { transferStored } from '../domain/sender-event.ts';
import type { Transfer } from '../domain/transfer.ts';
import { releaseTransfer } from './release-transfer.ts';
import { checkDigest, enterSingleLane, sameTransfer, transferOf } from './single-lane.ts';

export const finishSingle = (deps: Deps): Handler<typeof uploads.finishSingle> =>
  async function finishSingle(input, context) {
    const { store, clock } = deps;
    const { key, written } = input;
    const lane = await enterSingleLane(deps, input, written.size);
    checkDigest(written.sha256, lane.claims.sha256);

    const transfer = transferOf(lane, written);
    const stored = await store.storeWritten(transfer, key, transferStored({ context, now: clock() }, transfer));
    const released = stored ?? (await replay(deps, { planId: transfer.planId, key, written }));
    return releaseTransfer(deps, released, context);
  };

/** The plan's transfer when this is the same request again; these bytes are then not needed a second time. */
async function replay({ store }: Deps, { planId, key, written }: { planId: string; key: string; written: Written }): Promise<Transfer> {
  const existing = await store.findTransferOfPlan(planId);
  // The sweeper took the file for abandoned before this request came.
  if (!existing) throw fail('upload_expired');
  await store.discardBlob(key);
  return sameTransfer(existing, written);
}
