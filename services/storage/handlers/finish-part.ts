/** POST /api/upload/multipart/part, after the body: records the part; the same number again replaces it. */
import type { Handler, InputOf } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { errorTable, fail, failField, Failure } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { checkOpen, etagOf, sizeOfPart, type Upload } from '../domain/upload.ts';

type Input = InputOf<typeof uploads.finishPart>;

export const finishPart = (deps: Deps): Handler<typeof uploads.finishPart> =>
  async function finishPart(input) {
    const { store } = deps;
    const { uploadId, partNumber, key, written } = input;
    const { sha256 } = written;
    if (sha256 === undefined) throw failField('written.sha256', 'is required for a part');
    try {
      const upload = await checkSize(deps, input);
      if (upload.lane === 'direct' && !upload.sealed) return directPart(upload, input);
      if (!(await store.recordPart(input, { ...written, sha256 }))) await checkReplay(deps, input);
    } catch (error) {
      // A refused attempt is of no more use; an outage says nothing about it.
      if (error instanceof Failure && !errorTable[error.code].retryable) await store.discardBlob(key);
      throw error;
    }
    return { uploadId, partNumber, size: written.size, etag: etagOf({ sha256, etag: null }), sha256 };
  };

/** On the direct lane the gateway is a client like any other: the object store has the part, and is asked for it in the end. */
function directPart(upload: Upload, { uploadId, partNumber, written: { size, sha256, etag } }: Input) {
  checkOpen(upload);
  return { uploadId, partNumber, size, etag: etag ?? '', sha256: sha256! };
}

async function checkSize({ store }: Deps, { uploadId, partNumber, written }: Input): Promise<Upload> {
  const upload = await store.findUpload(uploadId);
  if (!upload) throw fail('multipart_upload_not_found');
  const size = sizeOfPart(upload, partNumber);
  if (written.size !== size) throw fail('part_size_mismatch', { detail: `Part ${partNumber} must have ${size} bytes and came with ${written.size}.` });
  return upload;
}

/** Promise: the same attempt recorded twice has the same answer. Throws why it was not recorded otherwise. */
async function checkReplay({ store }: Deps, input: Input): Promise<void> {
  const recorded = await store.findRecorded(input);
  if (recorded && recorded.sha256 === input.written.sha256) return;
  const upload = await store.findUpload(input.uploadId);
  if (!upload) throw fail('multipart_upload_not_found');
  checkOpen(upload);
  throw fail('upload_state_conflict', { detail: 'The part was given up before it was finished. Send it again.' });
}
