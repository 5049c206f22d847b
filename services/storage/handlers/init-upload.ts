/** POST /api/upload/multipart/init: begins an upload under a plan, the client's own or one asked for here. */
import type { Handler, InputOf } from '../../../shared/contract.ts';
import type { PlanClaims } from '../../../shared/contracts/plans.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import { newId, randomText } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { checkLane, narrow } from '../domain/narrowing.ts';
import { uploadEvent } from '../domain/sender-event.ts';
import type { Upload } from '../domain/upload.ts';
import type { NewUpload } from '../store/uploads.ts';
import { claimsOf, readCreation, type CreationRequest } from './planned-creation.ts';

type Input = InputOf<typeof uploads.initUpload>;

/** As many as a part number can name. */
const maxParts = 10_000;

export const initUpload = (deps: Deps): Handler<typeof uploads.initUpload> =>
  async function initUpload(input, context) {
    const request = await readCreation(deps, 'initUpload', input, context);
    const begun = await findBegun(deps, request);
    if (begun) return answerOf(begun);

    const { plan: _plan, ...asked } = input;
    const claims = await claimsOf(deps, request.own, input, { wanted: { ...asked, lane: 'multipart' }, context });
    checkLane(claims, 'multipart');
    const upload = uploadFor(claims, input, request, deps);
    const stored = await deps.store.initUpload(upload, uploadEvent({ context, now: deps.clock() }, 'upload.initialized', upload));
    return answerOf(stored ?? (await begunMeanwhile(deps, request)));
  };

/** Promise: the same operation has the same answer, and so has the same request under the same plan. */
async function findBegun({ store }: Deps, { operationHash, digest, own }: CreationRequest): Promise<Upload | undefined> {
  const operation = operationHash === null ? undefined : await store.findUploadOfOperation(operationHash);
  if (operation) return operation;
  const planned = own && (await store.findUploadOfPlan(own.planId));
  if (planned && (planned.requestDigest !== digest || planned.state === 'aborted' || planned.state === 'expired')) throw fail('plan_already_used');
  return planned;
}

/** Another request took the operation or the plan between our look and our insert, or the plan made a transfer by the single lane. */
async function begunMeanwhile(deps: Deps, request: CreationRequest): Promise<Upload> {
  const begun = await findBegun(deps, request);
  if (!begun) throw fail('plan_already_used');
  return begun;
}

function uploadFor(claims: PlanClaims, input: Input, request: CreationRequest, { limits }: Deps): NewUpload {
  const { planId, transferId, shareId, creator, filename, mimeType, geometry } = claims;
  const release = narrow(claims, input);
  const partCount = Math.ceil(input.size / geometry.partSize);
  if (partCount > maxParts) throw fail('payload_too_large', { detail: `The upload would have ${partCount} parts; ${maxParts} are allowed.` });
  return {
    id: newId('upload'), transferId, shareId, planId, planBound: request.own !== undefined, ...creator, filename, mimeType,
    size: input.size, sha256: claims.sha256 ?? input.sha256 ?? null, release,
    partSize: geometry.partSize, partCount, maxParallelParts: geometry.maxParallelParts, mainKey: randomText(),
    operationHash: request.operationHash, requestDigest: request.digest, ttl: limits.uploadTtl,
  };
}

/** The first answer, as it was when the upload began. */
function answerOf({ id, transferId, partSize, partCount, maxParallelParts, expiresAt }: Upload) {
  return { uploadId: id, transferId, state: 'initialized' as const, partSize, partCount, maxParallelParts, expiresAt: expiresAt.toISOString() };
}
