/** POST /api/upload/multipart/init: begins an upload under a plan, the client's own or one asked for here. */
import type { Handler, HandlerContext, InputOf } from '../../../shared/contract.ts';
import { plans, type PlanClaims } from '../../../shared/contracts/plans.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail, failField } from '../../../shared/errors.ts';
import { newId, randomText } from '../../../shared/ids.ts';
import { operationScope, requestDigest } from '../../../shared/operation.ts';
import { keyedDigest } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { checkLane, checkUnexpired, narrow } from '../domain/narrowing.ts';
import { uploadEvent } from '../domain/sender-event.ts';
import type { Upload } from '../domain/upload.ts';
import type { NewUpload } from '../store/uploads.ts';
import { claimOperation } from './claim-operation.ts';
import { directAnswer } from './direct-lane.ts';
import { readPlan } from './read-plan.ts';
import { ownContext } from './release-transfer.ts';
import { sessionOf } from './sessions.ts';

type Input = InputOf<typeof uploads.initUpload>;

/** As many as a part number can name. */
const maxParts = 10_000;

/** What says whether a request was made before. */
interface Request {
  readonly operationHash: string | null;
  readonly digest: string;
  readonly planId: string | undefined;
}

export const initUpload = (deps: Deps): Handler<typeof uploads.initUpload> =>
  async function initUpload(input, context) {
    const { keys, clock } = deps;
    const own = input.plan ? await readPlan(keys.plan, input.plan) : undefined;
    const request = requestOf(input, own?.planId, { context, keys });
    if (request.operationHash) await claimOperation(deps, { scope: request.operationHash, requestDigest: request.digest });
    const begun = await findBegun(deps, request);
    if (begun) return answerOf(deps, begun);

    if (own) checkPlanned(own, input, clock());
    const claims = own ? await withPasscode(deps, { claims: own, input }, context) : await planFor(deps, input, context);
    checkLane(claims, 'multipart');
    const upload = uploadFor(claims, input, request, deps);
    const stored = await deps.store.initUpload(upload, uploadEvent({ context, now: clock() }, 'upload.initialized', upload));
    return answerOf(deps, stored ?? (await begunMeanwhile(deps, request)));
  };

function requestOf({ plan: _plan, passcode, ...asked }: Input, planId: string | undefined, { context, keys }: { context: HandlerContext; keys: Deps['keys'] }): Request {
  const { caller, address, operationId } = context;
  return {
    operationHash: operationId === undefined ? null : operationScope(caller, address, operationId),
    // The digest is stored, and a passcode is not: its own digest takes our key.
    digest: requestDigest('initUpload', { ...asked, planId, ...(passcode !== undefined && { passcode: keyedDigest(passcode, keys.requestDigest) }) }),
    planId,
  };
}

/** Promise: the same operation has the same answer, and so has the same request under the same plan. */
async function findBegun({ store }: Deps, { operationHash, digest, planId }: Request): Promise<Upload | undefined> {
  const operation = operationHash === null ? undefined : await store.findUploadOfOperation(operationHash);
  if (operation) return operation;
  const planned = planId === undefined ? undefined : await store.findUploadOfPlan(planId);
  if (planned && (planned.requestDigest !== digest || planned.state === 'aborted' || planned.state === 'expired')) throw fail('plan_already_used');
  return planned;
}

/** Another request took the operation or the plan between our look and our insert, or the plan made a transfer by the single lane. */
async function begunMeanwhile(deps: Deps, request: Request): Promise<Upload> {
  const begun = await findBegun(deps, request);
  if (!begun) throw fail('plan_already_used');
  return begun;
}

/** What a plan of the client's own leaves to say: a template in place of explicit fields would be neither narrower nor wider. */
function checkPlanned(own: PlanClaims, input: Input, now: number): void {
  checkUnexpired(own, now);
  if (input.policyTemplateId) throw failField('policyTemplateId', 'the plan fixed the policy; narrow it by explicit fields');
}

/** A plan for a client that came without one, with the same bounds as if it had asked itself. */
async function planFor({ bus, keys }: Deps, { plan: _plan, ...asked }: Input, context: HandlerContext): Promise<PlanClaims> {
  const credential = context.credential && { credential: context.credential };
  const { plan } = await bus.call(plans.planTransfer, { ...asked, lane: 'multipart' }, { ...ownContext(context), ...credential });
  return readPlan(keys.plan, plan);
}

/** A plan whose request names a passcode: the planned one again, or one more condition. */
async function withPasscode({ bus }: Deps, { claims, input }: { claims: PlanClaims; input: Input }, context: HandlerContext): Promise<PlanClaims> {
  if (input.passcode === undefined) return claims;
  const { passcodeHash } = await bus.call(plans.hashPasscode, { passcode: input.passcode, planned: claims.release.passcodeHash }, ownContext(context));
  return { ...claims, release: { ...claims.release, passcodeHash } };
}

function uploadFor(claims: PlanClaims, input: Input, request: Request, { limits, blobs }: Deps): NewUpload {
  const { planId, transferId, shareId, creator, filename, mimeType, geometry } = claims;
  const release = narrow(claims, input);
  const partCount = Math.ceil(input.size / geometry.partSize);
  if (partCount > maxParts) throw fail('payload_too_large', { detail: `The upload would have ${partCount} parts; ${maxParts} are allowed.` });
  return {
    id: newId('upload'), transferId, shareId, planId, planBound: request.planId !== undefined, ...creator, filename, mimeType,
    size: input.size, sha256: claims.sha256 ?? input.sha256 ?? null, release,
    partSize: geometry.partSize, partCount, maxParallelParts: geometry.maxParallelParts, mainKey: randomText(),
    lane: claims.lane === 'direct' && blobs.objects ? 'direct' : 'multipart',
    operationHash: request.operationHash, requestDigest: request.digest, ttl: limits.uploadTtl,
  };
}

/** The first answer, as it was when the upload began. Addresses of the direct lane are fresh ones. */
async function answerOf(deps: Deps, upload: Upload) {
  const { id, transferId, partSize, partCount, maxParallelParts, expiresAt } = upload;
  // So that an object store that is away is told of now, not when the first part has been sent.
  if (upload.state === 'initialized') await sessionOf(deps, upload);
  return {
    uploadId: id, transferId, state: 'initialized' as const, partSize, partCount, maxParallelParts, expiresAt: expiresAt.toISOString(),
    ...await directAnswer(deps, upload),
  };
}
