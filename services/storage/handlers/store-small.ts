/** PUT /api/lane/single/{planId} with a small body: its bytes came with the request and go into the transfer's row. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import type { Deps } from '../deps.ts';
import { transferStored } from '../domain/sender-event.ts';
import { releaseTransfer } from './release-transfer.ts';
import { checkDigest, checkTimely, enterSingleLane, sameTransfer, transferOf } from './single-lane.ts';

export const storeSmall = (deps: Deps): Handler<typeof uploads.storeSmall> =>
  async function storeSmall(input, context) {
    const { store, clock } = deps;
    const bytes = context.bytes ?? new Uint8Array();
    const lane = await enterSingleLane(deps, input, bytes.length);
    await checkTimely(deps, lane.claims);
    const content = { size: bytes.length, crc32: crc32(bytes), sha256: createHash('sha256').update(bytes).digest('hex') };
    checkDigest(content.sha256, lane.claims.sha256, input.sha256);

    const transfer = transferOf(lane, content);
    const stored = await store.storeSmall(transfer, bytes, transferStored({ context, now: clock() }, transfer));
    const released = stored ?? sameTransfer(await store.findTransferOfPlan(transfer.planId), content);
    return releaseTransfer(deps, released, context);
  };
