/** GET /api/upload/multipart/status: what has arrived so far. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import type { Deps } from '../deps.ts';
import { etagOf, shownState } from '../domain/upload.ts';
import { partsOf } from './seal-upload.ts';
import { sentUpload } from './sent-upload.ts';

export const readUploadStatus = (deps: Deps): Handler<typeof uploads.readUploadStatus> =>
  async function readUploadStatus(input, context) {
    const upload = await sentUpload(deps, await deps.store.findUploadWithParts(input.uploadId), input, context);
    const { id, transferId, state, size, partSize, expiresAt } = upload;
    const parts = await partsOf(deps, upload);
    return {
      uploadId: id, transferId, state: shownState(state), size, partSize,
      receivedBytes: parts.reduce((sum, part) => sum + part.size, 0),
      parts: parts.map((part) => ({ partNumber: part.partNumber, size: part.size, etag: etagOf(part) })),
      expiresAt: expiresAt.toISOString(),
    };
  };
