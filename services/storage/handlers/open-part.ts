/** POST /api/upload/multipart/part, before the body: checks that the part may come and says where its bytes go. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import { randomText } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { checkOpen, fitsSession, offsetOfPart, sizeOfPart, type Upload } from '../domain/upload.ts';
import { sentUpload } from './sent-upload.ts';
import { sessionOf } from './sessions.ts';

export const openPart = (deps: Deps): Handler<typeof uploads.openPart> =>
  async function openPart(input, context) {
    const { store, blobs } = deps;
    const { uploadId, partNumber } = input;
    const upload = await sentUpload(deps, await store.findUpload(uploadId), input, context);
    checkOpen(upload);
    const size = sizeOfPart(upload, partNumber);
    if (input.size !== undefined && input.size !== size) throw fail('part_size_mismatch', { detail: `Part ${partNumber} must have ${size} bytes.` });

    const session = await sessionOf(deps, upload);
    const key = await placeOf(deps, upload, partNumber);
    const inSession = session !== undefined && key === upload.mainKey;
    const offset = inSession ? 0 : offsetOfPart(upload, { key, partNumber });
    return { ticket: await blobs.ticketToWrite({ key, offset, maxBytes: size, size, ...(inSession && { part: { session, partNumber } }) }), size };
  };

async function placeOf({ store, blobs, limits }: Deps, upload: Upload, partNumber: number): Promise<string> {
  // On the direct lane every attempt is the part: the object store keeps the last one.
  if (upload.lane === 'direct' && !upload.sealed) return upload.mainKey;
  const spareOnly = blobs.objects !== undefined && (!fitsSession(upload) || upload.sealed);
  const key = await store.claimPart({ upload, partNumber, spareKey: randomText(), checkAfterSeconds: limits.blobIdle, spareOnly });
  // It was open a moment ago.
  if (!key) throw fail('upload_state_conflict', { detail: 'The upload has just ended.' });
  return key;
}
