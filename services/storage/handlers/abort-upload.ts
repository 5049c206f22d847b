/** POST /api/upload/multipart/abort: ends an upload without a transfer; again answers the same. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { uploadEvent } from '../domain/sender-event.ts';
import { shownState } from '../domain/upload.ts';
import { sentUpload } from './sent-upload.ts';

export const abortUpload = (deps: Deps): Handler<typeof uploads.abortUpload> =>
  async function abortUpload(input, context) {
    const { store, clock } = deps;
    const upload = await sentUpload(deps, await store.findUpload(input.uploadId), input, context);
    const aborted = await store.abortUpload(upload.id, uploadEvent({ context, now: clock() }, 'upload.aborted', upload));
    const state = aborted ? 'aborted' : (await store.findUpload(upload.id))?.state ?? upload.state;
    // An expired upload is gone as its sender wants it.
    if (state !== 'aborted' && state !== 'expired') throw fail('upload_state_conflict', { detail: `The upload is ${shownState(state)}.` });
    return { uploadId: upload.id, state };
  };
