/** Has the object store make one object of an upload's parts, before the upload becomes a transfer. */
import type { StoredPart } from '../../../shared/blobs/blobs.ts';
import { fail, Failure } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { partsInSession, type Part, type Upload } from '../domain/upload.ts';
import type { UploadWithParts } from '../store/uploads.ts';
import { objectsOf } from './sessions.ts';

type SealDeps = Pick<Deps, 'store' | 'blobs' | 'joined'>;

/** Whether the store has still to do something before the parts can be read. */
export function isUnsealed({ blobs }: Pick<Deps, 'blobs'>, { session, sealed }: Upload): boolean {
  return blobs.objects !== undefined && session !== null && !sealed;
}

/** The parts of an upload. Of those that went straight to the object store, the store knows. */
export async function partsOf(deps: Pick<Deps, 'blobs'>, upload: UploadWithParts): Promise<readonly Part[]> {
  const { lane, state, mainKey, session, parts } = upload;
  if (lane !== 'direct' || state !== 'initialized' || session === null || !isUnsealed(deps, upload)) return parts;
  const listed = (await objectsOf(deps).listParts(mainKey, session)) ?? [];
  return listed.map((part) => ({ ...part, key: mainKey, sha256: null, crc32: null, place: null }));
}

/**
 * Promise: from the first statement on no part changes, the store's step may be repeated, and the last statement opens the upload again;
 * whoever comes after a crash, a client or the sweeper, goes on from there.
 * @param parts those that were checked
 * @throws upload_state_conflict when the store has other parts; the upload is open again without them
 */
export async function sealUpload(deps: SealDeps, upload: UploadWithParts, parts: readonly Part[]): Promise<void> {
  await deps.joined(upload.id, async () => {
    const version = upload.state === 'assembling' ? upload.partsVersion : await deps.store.beginAssembly(upload, upload.lane === 'direct' ? asStored(parts) : []);
    // Undefined: somebody else was faster, or a part arrived. The caller reads the upload again.
    if (version !== undefined) await assemble(deps, { ...upload, partsVersion: version }, parts);
  });
}

const asStored = (parts: readonly Part[]): StoredPart[] => parts.map(({ partNumber, size, etag }) => ({ partNumber, size, etag: etag ?? '' }));

async function assemble(deps: SealDeps, upload: Upload, parts: readonly Part[]): Promise<void> {
  const objects = objectsOf(deps);
  const { mainKey, session } = upload;
  const inSession = partsInSession(upload, parts);
  try {
    if (inSession.length === 0) await objects.cancel(mainKey, session!);
    else await objects.complete(mainKey, session!, inSession);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'upload_state_conflict') throw error;
    const lost = await lostParts(deps, upload, inSession);
    // The store has them all, or no session any more: another replica is putting the upload together at this moment.
    if (lost.length === 0) throw fail('service_unavailable', {}, error);
    await deps.store.reopenUpload(upload, lost);
    throw error;
  }
  await deps.store.sealUpload(upload, inSession);
}

/** Parts that the store has with other bytes, or not at all. When there are any, nothing is kept of the direct lane: the store is asked again. */
async function lostParts(deps: SealDeps, { lane, mainKey, session }: Upload, parts: readonly StoredPart[]): Promise<number[]> {
  const listed = await objectsOf(deps).listParts(mainKey, session!);
  if (!listed) return [];
  const stored = new Map(listed.map(({ partNumber, etag }) => [partNumber, etag]));
  const lost = parts.filter(({ partNumber, etag }) => stored.get(partNumber) !== etag);
  return (lane === 'direct' && lost.length > 0 ? parts : lost).map(({ partNumber }) => partNumber);
}
