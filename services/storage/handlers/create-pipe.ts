/** POST /api/pipe: a transfer and its share before any byte is there, for its sender to write and others to follow. */
import type { Handler, InputOf } from '../../../shared/contract.ts';
import type { PlanClaims } from '../../../shared/contracts/plans.ts';
import type { pipes } from '../../../shared/contracts/pipes.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { bytesAllowed, checkLane, narrow } from '../domain/narrowing.ts';
import { pipeEvent } from '../domain/sender-event.ts';
import type { NewTransfer, Transfer } from '../domain/transfer.ts';
import { claimsOf, readCreation, type CreationRequest } from './planned-creation.ts';
import { releaseTransfer } from './release-transfer.ts';

type Input = InputOf<typeof pipes.createPipe>;

/** What a pipe is called whose sender did not say. */
const unnamed = 'pipe';

export const createPipe = (deps: Deps): Handler<typeof pipes.createPipe> =>
  async function createPipe(input, context) {
    const request = await readCreation(deps, 'createPipe', input, context);
    const pipe = (await findBegun(deps, request)) ?? (await begin());
    const answer = await releaseTransfer(deps, pipe, context);
    return { ...answer, pipeId: pipe.id, uploadUrl: `${deps.baseUrl}/api/pipe/${pipe.id}` };

    async function begin(): Promise<Transfer> {
      const { plan: _plan, ...asked } = input;
      const claims = await claimsOf(deps, request.own, input, { wanted: { filename: unnamed, ...asked, release: 'live' }, context });
      checkLane(claims, 'pipe');
      const transfer = transferOf(claims, input);
      const { operationHash, digest: requestDigest } = request;
      const event = pipeEvent({ context, now: deps.clock() }, 'upload.initialized', transfer, {});
      const begun = (await deps.store.createPipe({ transfer, maxBytes: bytesAllowed(claims), operationHash, requestDigest }, event))
        // Another request took the operation or the plan between our look and our insert.
        ?? (await findBegun(deps, request));
      if (!begun) throw fail('plan_already_used');
      return begun;
    }
  };

/** Promise: the same operation has the same answer, and so has the same request under the same plan. */
async function findBegun({ store }: Deps, { operationHash, digest, own }: CreationRequest): Promise<Transfer | undefined> {
  const operation = operationHash === null ? undefined : await store.findPipeOfOperation(operationHash);
  if (operation) return operation;
  const planned = own && (await store.findPipeOfPlan(own.planId));
  if (planned && (planned.requestDigest !== digest || planned.endedAt)) throw fail('plan_already_used');
  return planned;
}

/** A digest that was promised is kept for the end. */
function transferOf(claims: PlanClaims, input: Input): NewTransfer {
  const { transferId: id, shareId, planId, creator, filename, mimeType, sha256 = null } = claims;
  return { id, shareId, planId, ...creator, kind: 'pipe', lane: 'pipe', filename, mimeType, size: 0, crc32: null, sha256, release: narrow(claims, input) };
}
