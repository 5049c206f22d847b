/** Sessions of the object store: begun once for a file whose row exists, so that nothing is in the store that no table knows. */
import type { ObjectStore } from '../../../shared/blobs/blobs.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { fitsSession, type Upload } from '../domain/upload.ts';

export function objectsOf({ blobs }: Pick<Deps, 'blobs'>): ObjectStore {
  if (!blobs.objects) throw new Error('the bytes are not in an object store');
  return blobs.objects;
}

/** Begins a session, or joins the one that another request has just begun. */
export async function beginSession(deps: Pick<Deps, 'store' | 'blobs'>, key: string): Promise<string> {
  const objects = objectsOf(deps);
  const begun = await objects.begin(key);
  const kept = await deps.store.keepSession(key, begun);
  // Left behind by a crash here, it ends when its key is removed.
  if (kept !== begun) await objects.cancel(key, begun);
  if (!kept) throw fail('upload_expired');
  return kept;
}

/** The session that an upload's parts go into; undefined where they are files or objects of their own. */
export async function sessionOf(deps: Pick<Deps, 'store' | 'blobs'>, upload: Upload): Promise<string | undefined> {
  if (!deps.blobs.objects || !fitsSession(upload)) return undefined;
  return upload.session ?? beginSession(deps, upload.mainKey);
}
