/** POST /api/upload/multipart/part, before the body: checks that the part may come and says where its bytes go. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import { randomText } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { checkOpen, offsetOfPart, sizeOfPart } from '../domain/upload.ts';
import { sentUpload } from './sent-upload.ts';

export const openPart = (deps: Deps): Handler<typeof uploads.openPart> =>
  async function openPart(input, context) {
    const { store, blobs, limits } = deps;
    const { uploadId, partNumber } = input;
    const upload = await sentUpload(deps, await store.findUpload(uploadId), input, context);
    checkOpen(upload);
    const size = sizeOfPart(upload, partNumber);
    if (input.size !== undefined && input.size !== size) throw fail('part_size_mismatch', { detail: `Part ${partNumber} must have ${size} bytes.` });

    const key = await store.claimPart(upload, partNumber, randomText(), limits.blobIdle);
    // It was open a moment ago.
    if (!key) throw fail('upload_state_conflict', { detail: 'The upload has just ended.' });
    return { ticket: await blobs.ticketToWrite({ key, offset: offsetOfPart(upload, { key, partNumber }), maxBytes: size }), size };
  };
