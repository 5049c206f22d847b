/** GET /api/folder/{folderId}/upload-status?view=completion: how far a command is. */
import type { Handler } from '../../../shared/contract.ts';
import type { folders } from '../../../shared/contracts/folders.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { isDone } from '../domain/completion.ts';
import { madeBySender } from './made-by-sender.ts';

export const readCompletion = (deps: Deps): Handler<typeof folders.readCompletion> =>
  async function readCompletion({ folderId, operationId, deleteToken }, context) {
    const { store } = deps;
    await madeBySender(deps, { id: folderId, deleteToken, find: store.findFolder, absent: 'folder_not_found' }, context);
    const completion = await store.findCompletion(folderId, operationId);
    if (!completion) throw fail('multipart_upload_not_found', { detail: 'No command of this folder has this operationId.' });
    const { fileId, uploadId, state, attempts, error } = completion;
    return { operationId, fileId, uploadId, state, attempts, done: isDone(completion), ...(error && { error }) };
  };
