/** POST /api/upload/multipart/complete: the parts become a transfer with its share; the same again gives the same answer. */
import type { Handler, HandlerContext, InputOf } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import { operationOf } from '../../../shared/operation.ts';
import type { Segment } from '../../../shared/blobs/blobs.ts';
import type { Deps } from '../deps.ts';
import { transferStored, uploadEvent } from '../domain/sender-event.ts';
import type { NewTransfer, Transfer } from '../domain/transfer.ts';
import { checkOpen, checkParts, segmentsOf, type Upload } from '../domain/upload.ts';
import type { UploadWithParts } from '../store/uploads.ts';
import { claimOperation } from './claim-operation.ts';
import { releaseTransfer } from './release-transfer.ts';
import { isUnsealed, partsOf, sealUpload } from './seal-upload.ts';
import { sentUpload } from './sent-upload.ts';

type Input = InputOf<typeof uploads.completeUpload>;

/** So often a part that arrives meanwhile may make the completion begin again. */
const maxTries = 5;

export const completeUpload = (deps: Deps): Handler<typeof uploads.completeUpload> =>
  async function completeUpload(input, context) {
    const upload = await sentUpload(deps, await deps.store.findUploadWithParts(input.uploadId), input, context);
    await claimFor(deps, input, context);
    const transfer = await completeOnce(deps, upload, input, context);
    const answer = await releaseTransfer(deps, transfer, context);
    // At once, so that the status says completed from here on.
    if (upload.state !== 'completed') await deps.store.settle([transfer.id], 'created');
    return answer;
  };

/** Completing is idempotent by itself; a key that came with another request is still refused. */
async function claimFor(deps: Deps, { plan: _plan, ...asked }: Input, { caller, address, operationId }: HandlerContext): Promise<void> {
  if (operationId === undefined) return;
  await claimOperation(deps, operationOf({ caller, operationId, contract: 'completeUpload', input: asked, ...(address && { address }) }));
}

/** The transfer of an upload: made now, or by an earlier request, or by one that runs beside this one. */
async function completeOnce(deps: Deps, first: UploadWithParts, input: Input, context: HandlerContext): Promise<Transfer> {
  let upload: UploadWithParts | undefined = first;
  for (let tries = 0; upload && tries < maxTries; tries += 1) {
    if (upload.state === 'completing' || upload.state === 'completed') return transferMade(deps, upload);
    if (upload.state !== 'assembling') checkOpen(upload);
    const transfer = isUnsealed(deps, upload) ? await prepare(deps, upload, input) : await tryToComplete(deps, upload, input, context);
    if (transfer) return transfer;
    upload = await deps.store.findUploadWithParts(upload.id);
  }
  if (upload?.state === 'completing' || upload?.state === 'completed') return transferMade(deps, upload);
  throw fail('upload_state_conflict', { detail: 'Parts keep arriving while the upload is being completed.' });
}

async function transferMade({ store }: Deps, { transferId }: Upload): Promise<Transfer> {
  const transfer = await store.findTransfer(transferId);
  if (!transfer) throw fail('multipart_upload_not_found');
  return transfer;
}

/** The object store puts the parts together; the upload is read again after it. */
async function prepare(deps: Deps, upload: UploadWithParts, input: Input): Promise<undefined> {
  const parts = await partsOf(deps, upload);
  checkParts(upload, parts, input.parts);
  await sealUpload(deps, upload, parts);
}

/** Undefined when the upload changed since it was read. */
async function tryToComplete({ store, digests, clock }: Deps, upload: UploadWithParts, input: Input, context: HandlerContext): Promise<Transfer | undefined> {
  checkParts(upload, upload.parts, input.parts);
  const segments = segmentsOf(upload, upload.parts);
  const sha256 = await checkPromisedDigest(digests, upload, segments, input.sha256);
  const transfer = transferOf(upload, sha256);
  const occasion = { context, now: clock() };
  const events = [uploadEvent(occasion, 'upload.completed', upload), transferStored(occasion, transfer)];
  return store.completeUpload({ upload, transfer, segments, events });
}

/** Promise: an upload whose bytes do not have the promised digest is not completed, and stays as it was. Answers the digest if it is known. */
async function checkPromisedDigest(digests: Deps['digests'], upload: UploadWithParts, segments: readonly Segment[], given: string | undefined): Promise<string | null> {
  const promised = [upload.sha256, given].filter((digest) => typeof digest === 'string');
  const only = upload.partCount === 1 ? upload.parts[0]!.sha256 ?? undefined : undefined;
  if (promised.length === 0) return only ?? null;
  const actual = only ?? (await digests.compute(upload, segments));
  if (promised.some((digest) => digest !== actual)) throw fail('digest_mismatch', { detail: 'The parts together do not have the promised SHA-256. The upload is as it was.' });
  return actual;
}

function transferOf(upload: Upload, sha256: string | null): NewTransfer {
  const { transferId, shareId, planId, ownerId, agentId, lane, filename, mimeType, size, release } = upload;
  return { id: transferId, shareId, planId, ownerId, agentId, kind: 'file', lane, filename, mimeType, size, crc32: null, sha256, release };
}
