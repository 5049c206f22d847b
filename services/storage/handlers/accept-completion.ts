/** POST /api/folder/{folderId}/upload-complete and upload-direct-complete: the command is accepted before it is carried out, and survives whatever dies in between. */
import type { HandlerContext, InputOf } from '../../../shared/contract.ts';
import type { folders } from '../../../shared/contracts/folders.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { checkSame, type Completion } from '../domain/completion.ts';
import { checkOpen } from '../domain/upload.ts';
import { madeBySender } from './made-by-sender.ts';

export const acceptCompletion = (deps: Deps) =>
  async function acceptCompletion({ deleteToken, ...command }: InputOf<typeof folders.completeFile>, context: HandlerContext) {
    const { store, baseUrl, onAccepted } = deps;
    const { folderId, operationId, fileId, uploadId } = command;
    await madeBySender(deps, { id: folderId, deleteToken, find: store.findFolder, absent: 'folder_not_found' }, context);
    let completion = await store.findCompletion(folderId, operationId);
    if (!completion) {
      const upload = await store.findUpload(uploadId);
      if (upload?.folderId !== folderId || upload.transferId !== fileId) throw fail('multipart_upload_not_found');
      if (upload.state !== 'completed') checkOpen(upload);
      const { requestId, traceparent, address } = context;
      completion = await store.acceptCompletion(command, { requestId, traceparent, ...(address && { address }) });
      onAccepted();
    }
    checkSame(completion, command);
    return { operationId, state: completion.state, statusUrl: `${baseUrl}${statusPath(completion)}` };
  };

function statusPath({ folderId, operationId }: Completion): string {
  return `/api/folder/${folderId}/upload-status?view=completion&operationId=${encodeURIComponent(operationId)}`;
}
