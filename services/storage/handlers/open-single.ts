/** PUT /api/lane/single/{planId}, before the body: checks the plan and says where the bytes go. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import { randomText } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { bytesAllowed, checkUnexpired } from '../domain/narrowing.ts';
import { enterSingleLane } from './single-lane.ts';

export const openSingle = (deps: Deps): Handler<typeof uploads.openSingle> =>
  async function openSingle(input) {
    const { store, blobs, clock, limits } = deps;
    const { claims } = await enterSingleLane(deps, input, input.size);
    checkUnexpired(claims, clock());
    // A plan that made a transfer by this lane is let through: its bytes decide whether this is the same request again.
    const key = randomText();
    if (!(await store.beginBlob(key, claims.planId, limits.blobIdle))) throw fail('plan_already_used');
    const ticket = await blobs.ticketToWrite({ key, offset: 0, maxBytes: input.size ?? bytesAllowed(claims), size: input.size });
    return { ticket, sha256Wanted: claims.sha256 !== undefined };
  };
