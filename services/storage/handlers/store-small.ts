/** PUT /api/lane/single/{planId} with a small body: its bytes came with the request and go into the transfer's row. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import type { Deps } from '../deps.ts';
import { checkUnexpired, isExpired } from '../domain/narrowing.ts';
import { transferStored } from '../domain/sender-event.ts';
import { releaseTransfer } from './release-transfer.ts';
import { checkDigest, enterSingleLane, sameTransfer, transferOf } from './single-lane.ts';

export const storeSmall = (deps: Deps): Handler<typeof uploads.storeSmall> =>
  async function storeSmall(input, context) {
    const { store, clock } = deps;
    const bytes = context.bytes ?? new Uint8Array();
    const lane = await enterSingleLane(deps, input, bytes.length);
    // A form's plan is not in its sender's hands: the same form again has its answer for as long as the first one is remembered.
    const earlier = isExpired(lane.claims, clock()) ? await store.findTransferOfPlan(lane.claims.planId) : undefined;
    if (!earlier) checkUnexpired(lane.claims, clock());
    const content = { size: bytes.length, crc32: crc32(bytes), sha256: createHash('sha256').update(bytes).digest('hex') };
    checkDigest(content.sha256, lane.claims.sha256, input.sha256);

    const transfer = transferOf(lane, content);
    const stored = earlier ? undefined : await store.storeSmall(transfer, bytes, transferStored({ context, now: clock() }, transfer));
    const released = stored ?? sameTransfer(earlier ?? await store.findTransferOfPlan(transfer.planId), content);
    return releaseTransfer(deps, released, context);
  };
