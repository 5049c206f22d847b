/** Carries out one accepted command: the parts of an upload become a file of its folder, once. */
import { combineCrc32 } from '../../../shared/crc32.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { contextOf, finalError, pauseAfter, type Completion } from '../domain/completion.ts';
import { fileReady } from '../domain/sender-event.ts';
import { checkOpen, checkParts, segmentsOf, type Part } from '../domain/upload.ts';
import type { UploadWithParts } from '../store/uploads.ts';
import { isUnsealed, partsOf, sealUpload } from './seal-upload.ts';

type Worker = Pick<Deps, 'store' | 'clock' | 'blobs' | 'joined'>;

/** So often a part that arrives meanwhile may make the completion begin again. */
const maxTries = 5;

/** Promise: a command ends as ready or as failed for a reason that stays; whatever may pass is tried again. */
export async function carryOutCompletion(worker: Worker, completion: Completion): Promise<void> {
  const { store } = worker;
  try {
    await completeFile(worker, completion);
  } catch (error) {
    const final = finalError(error);
    if (final) return store.endCompletion(completion, final);
    await store.retryCompletion(completion, pauseAfter(completion.attempts));
    throw error;
  }
}

async function completeFile(worker: Worker, completion: Completion): Promise<void> {
  const { store } = worker;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const upload = await store.findUploadWithParts(completion.uploadId);
    if (!upload) throw fail('multipart_upload_not_found');
    if (upload.state === 'completed') return store.endCompletion(completion, null);
    if (upload.state !== 'assembling') checkOpen(upload);
    if (isUnsealed(worker, upload)) await putTogether(worker, upload);
    else if (await storeFile(worker, upload, completion)) return;
    if (!(await store.findFolder(completion.folderId))) throw fail('folder_not_found');
  }
  throw fail('service_unavailable', { detail: 'Parts keep arriving while the file is being completed.' });
}

/** The object store makes one object of the parts; the upload is read again after it. */
async function putTogether(worker: Worker, upload: UploadWithParts): Promise<void> {
  const parts = await partsOf(worker, upload);
  checkParts(upload, parts);
  await sealUpload(worker, upload, parts);
}

/** Answers false when the upload or its folder changed since it was read. */
async function storeFile({ store, clock }: Worker, upload: UploadWithParts, completion: Completion): Promise<boolean> {
  const { parts } = upload;
  checkParts(upload, parts);
  const file = { upload, segments: segmentsOf(upload, parts), crc32: crc32Of(parts), sha256: parts.length === 1 ? parts[0]!.sha256 : null };
  return store.storeFile(file, completion, fileReady({ context: contextOf(completion), now: clock() }, upload));
}

/** Archives begin an entry with the CRC-32 of its bytes. Unknown where a store took a part that we did not see. */
function crc32Of(parts: readonly Part[]): number | null {
  const known = parts.filter((part): part is Part & { crc32: number } => part.crc32 !== null);
  return known.length === parts.length ? combineCrc32(known) : null;
}
