/** GET /api/folder/{folderId}: the files of a folder, page by page. It spends nothing. */
import type { Handler, HandlerContext, InputOf } from '../../../shared/contract.ts';
import type { folders } from '../../../shared/contracts/folders.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { openCursor, sealCursor, type Folder } from '../domain/folder.ts';
import type { ListedFile } from '../store/folders.ts';
import { madeBySender } from './made-by-sender.ts';

type Input = InputOf<typeof folders.listFolder>;

export const listFolder = (deps: Deps): Handler<typeof folders.listFolder> =>
  async function listFolder(input, context) {
    const { store, baseUrl } = deps;
    const { folderId, limit, cursor, resolved } = input;
    const after = openCursor(cursor);
    const folder = await listed(deps, input, context);
    // One file more than the page holds tells whether there is a next page.
    const [found, state] = await Promise.all([store.listFiles({ folderId, after, limit: limit + 1, readyOnly: resolved }), store.readFolderState(folderId)]);
    const page = found.slice(0, limit);
    return {
      folderId, name: folder.filename, state, count: page.length, files: page.map((file) => describe(file, folder, baseUrl)),
      nextCursor: found.length > limit ? sealCursor(page.at(-1)!.place) : null,
    };
  };

/** The folder, for its sender, or for a receiver whom policy let through. */
async function listed(deps: Deps, { folderId, resolved, deleteToken }: Input, context: HandlerContext): Promise<Folder> {
  const { store } = deps;
  if (!resolved) return madeBySender(deps, { id: folderId, deleteToken, find: store.findFolder, absent: 'folder_not_found' }, context);
  const folder = await store.findFolder(folderId);
  if (!folder) throw fail('folder_not_found');
  return folder;
}

function describe({ fileId, path, size, mimeType, state, sha256 }: ListedFile, { release, shareId }: Folder, baseUrl: string) {
  return {
    fileId, path, size, mimeType, state,
    ...(sha256 && { sha256 }),
    ...(state === 'ready' && release.mode === 'open' && { downloadUrl: `${baseUrl}/api/dl/${fileId}?share_id=${shareId}` }),
  };
}
