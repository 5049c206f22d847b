/** POST /api/folder/{folderId}/files: a file that will be in the folder, and the upload that its bytes come by. */
import type { Handler, HandlerContext, InputOf } from '../../../shared/contract.ts';
import type { folders } from '../../../shared/contracts/folders.ts';
import { fail, type Failure } from '../../../shared/errors.ts';
import { newId, randomText } from '../../../shared/ids.ts';
import { requestDigest, targetScope } from '../../../shared/operation.ts';
import type { Deps } from '../deps.ts';
import { geometryOf, namesOf, type Folder } from '../domain/folder.ts';
import { uploadEvent } from '../domain/sender-event.ts';
import type { Upload } from '../domain/upload.ts';
import type { Declared, NewFile } from '../store/folders.ts';
import { claimOperation } from './claim-operation.ts';
import { directAnswer } from './direct-lane.ts';
import { madeBySender } from './made-by-sender.ts';

type Input = InputOf<typeof folders.declareFile>;

export const declareFile = (deps: Deps): Handler<typeof folders.declareFile> =>
  async function declareFile(input, context) {
    const { store, clock } = deps;
    const { folderId, deleteToken, path } = input;
    const folder = await madeBySender(deps, { id: folderId, deleteToken, find: store.findFolder, absent: 'folder_not_found' }, context);
    const file = fileOf(deps, input, folder, context);
    const before = await findDeclared(deps, file);
    if (before) return answerOf(deps, before, path);

    const { fileId, uploadId, size } = file;
    const event = uploadEvent({ context, now: clock() }, 'upload.initialized', { ...folder, id: uploadId, transferId: fileId, folderId, size, lane: file.lane });
    const declared = await store.declareFile(file, event);
    if (declared !== 'declared' && declared !== 'declared_before') throw refusal(declared, deps);
    const upload = declared === 'declared' ? await store.findUpload(uploadId) : await findDeclared(deps, file);
    if (!upload) throw fail('folder_not_found');
    return answerOf(deps, upload, path);
  };

function fileOf({ limits, blobs, folder: { maxFiles, maxBytes, direct } }: Deps, { folderId, path, size, mimeType = 'application/octet-stream', lane }: Input, folder: Folder, { operationId }: HandlerContext): NewFile {
  return {
    folderId, fileId: newId('file'), uploadId: newId('upload'), path, size, mimeType, ...namesOf(path), ...geometryOf(folder, size), mainKey: randomText(),
    lane: lane === 'direct' && direct && blobs.objects && size > 0 ? 'direct' : 'multipart',
    // Several may fill a folder, and each may go on for the other: an operation is the folder's.
    operationHash: operationId === undefined ? null : targetScope(folderId, operationId),
    requestDigest: requestDigest('declareFile', { folderId, path, size, mimeType, lane }),
    ttl: limits.uploadTtl, maxFiles, maxBytes,
  };
}

/** Promise: the same operation has the same answer. */
async function findDeclared(deps: Deps, { operationHash, requestDigest: digest }: NewFile): Promise<Upload | undefined> {
  if (operationHash === null) return undefined;
  await claimOperation(deps, { scope: operationHash, requestDigest: digest });
  return deps.store.findUploadOfOperation(operationHash);
}

function refusal(why: Exclude<Declared, 'declared' | 'declared_before'>, { folder: { maxFiles, maxBytes } }: Deps): Failure {
  const path = (message: string) => ({ detail: `path: ${message}`, errors: [{ path: 'path', message }] });
  switch (why) {
    case 'folder_gone': return fail('folder_not_found');
    case 'path_taken': return fail('upload_state_conflict', path('is taken in this folder, but for upper and lower case, or is a folder of another file, or is below one'));
    case 'too_many_files': return fail('payload_too_large', { detail: `A folder holds at most ${maxFiles} files.` });
    case 'too_many_bytes': return fail('payload_too_large', { detail: `The files of a folder have at most ${maxBytes} bytes together.` });
  }
}

/** Addresses of the direct lane are fresh ones each time. */
async function answerOf(deps: Deps, upload: Upload, path: string) {
  const { id: uploadId, transferId: fileId, partSize, partCount, maxParallelParts, expiresAt } = upload;
  return { fileId, uploadId, path, partSize, partCount, maxParallelParts, expiresAt: expiresAt.toISOString(), ...await directAnswer(deps, upload) };
}
