/** Resumable uploads: begun under a plan, gone on with by their sender, finished as any lane. */
import type { Handler, HandlerContext } from '../../../shared/contract.ts';
import type { resumables } from '../../../shared/contracts/resumables.ts';
import { fail } from '../../../shared/errors.ts';
import { newId } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { checkSender } from '../domain/access.ts';
import { bytesAllowed, checkUnexpired, narrow } from '../domain/narrowing.ts';
import { checkNewSize, checkThere, isWhole, transferOfResumable, type Resumable } from '../domain/resumable.ts';
import { transferStored, uploadEvent } from '../domain/sender-event.ts';
import type { Transfer } from '../domain/transfer.ts';
import { takeLease } from './append-pieces.ts';
import { readPlan } from './read-plan.ts';
import { releaseTransfer } from './release-transfer.ts';

export const beginResumable = (deps: Deps): Handler<typeof resumables.beginResumable> =>
  async function beginResumable({ plan, size, metadata }, context) {
    const { store, keys, clock, limits } = deps;
    const claims = await readPlan(keys.plan, plan);
    const { planId, transferId, shareId, creator, filename, mimeType } = claims;
    const begun = await store.findResumableOfPlan(planId);
    if (begun) return answerOf(again(begun));
    checkUnexpired(claims, clock());
    const upload = {
      id: newId('upload'), transferId, shareId, planId, ...creator, filename, mimeType,
      size: size ?? null, maxBytes: size ?? bytesAllowed(claims), release: narrow(claims, { size }), metadata: metadata ?? null, ttl: limits.uploadTtl,
    };
    await store.beginResumable(upload, uploadEvent({ context, now: clock() }, 'upload.initialized', { ...upload, lane: 'multipart' }));
    return answerOf(again(await store.findResumableOfPlan(planId)));
  };

/** The upload that a plan began, unless it came to nothing. */
function again(begun: Resumable | undefined): Resumable {
  if (!begun || begun.state === 'aborted' || begun.state === 'expired') throw fail('plan_already_used');
  return begun;
}

function answerOf({ id: uploadId, received: offset, size, metadata, createdAt, expiresAt }: Resumable) {
  return {
    uploadId, offset, ...(size !== null && { size }), ...(metadata !== null && { metadata }),
    createdAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString(),
  };
}

/** Promise: an upload is there for its sender only, and until it ends. @throws multipart_upload_not_found, upload_expired, and who may not */
async function sentResumable(deps: Deps, uploadId: string, { caller }: HandlerContext): Promise<Resumable> {
  const upload = await deps.store.findResumable(uploadId);
  if (!upload) throw fail('multipart_upload_not_found');
  checkSender(caller, upload);
  checkThere(upload);
  return upload;
}

export const readResumable = (deps: Deps): Handler<typeof resumables.readResumable> =>
  async function readResumable({ uploadId }, context) {
    return answerOf(await sentResumable(deps, uploadId, context));
  };

export const declareSize = (deps: Deps): Handler<typeof resumables.declareSize> =>
  async function declareSize({ uploadId, size }, context) {
    checkNewSize(await sentResumable(deps, uploadId, context), size);
    if (!(await deps.store.declareSize(uploadId, size))) throw fail('upload_state_conflict', { detail: 'The upload has just changed.' });
    return { size };
  };

export const continueResumable = (deps: Deps): Handler<typeof resumables.continueResumable> =>
  async function continueResumable({ uploadId, offset }, context) {
    await sentResumable(deps, uploadId, context);
    return takeLease(deps, { id: uploadId, offset, takesOver: true });
  };

export const finishResumable = (deps: Deps): Handler<typeof resumables.finishResumable> =>
  async function finishResumable({ uploadId }, context) {
    const upload = await sentResumable(deps, uploadId, context);
    const transfer = (upload.state === 'open' ? await tryToFinish(deps, upload, context) : undefined) ?? await deps.store.findTransfer(upload.transferId);
    if (!transfer) throw fail('upload_state_conflict', { detail: 'The upload is not whole.' });
    return releaseTransfer(deps, transfer, context);
  };

/** More than so many pieces no upload has: they are recorded when they are full, or after a pause. */
const manyPieces = 1_000_000;

/** Undefined when it is not whole, or was finished meanwhile. */
async function tryToFinish({ store, clock }: Deps, upload: Resumable, context: HandlerContext): Promise<Transfer | undefined> {
  if (!isWhole(upload)) return undefined;
  const transfer = transferOfResumable(upload);
  const occasion = { context, now: clock() };
  const events = [uploadEvent(occasion, 'upload.completed', { ...upload, lane: 'multipart' }), transferStored(occasion, transfer)];
  const pieces = await store.findPieces(upload.id, 0, manyPieces);
  return store.finishResumable(upload.id, { transfer, segments: pieces.map(({ key, offset, size }) => ({ key, offset, size })), events });
}

export const abortResumable = (deps: Deps): Handler<typeof resumables.abortResumable> =>
  async function abortResumable({ uploadId }, context) {
    const { store, clock } = deps;
    const upload = await store.findResumable(uploadId);
    if (!upload) throw fail('multipart_upload_not_found');
    checkSender(context.caller, upload);
    const aborted = upload.state === 'open' && await store.abortResumable(uploadId, uploadEvent({ context, now: clock() }, 'upload.aborted', { ...upload, lane: 'multipart' }));
    // What the sender wants gone is gone; what has become a transfer is not.
    if (!aborted && (await store.findResumable(uploadId))?.state === 'completed') throw fail('upload_state_conflict', { detail: 'The upload is completed. Delete its transfer.' });
    return { uploadId };
  };
