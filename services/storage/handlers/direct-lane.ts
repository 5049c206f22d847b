/** The direct lane: addresses of the object store to which the client sends its parts itself. Never one from which anything is read. */
import type { Handler, OutputOf } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { checkOpen, sizeOfPart, type Upload } from '../domain/upload.ts';
import { sentUpload } from './sent-upload.ts';
import { objectsOf, sessionOf } from './sessions.ts';

type Signed = OutputOf<typeof uploads.signDirectParts>;

/** Addresses in one answer. */
export const directBatch = 100;
/** Seconds for which an address is good; it is never good for longer than its upload. */
const longest = 3_600;

/** POST /api/upload/multipart/direct-urls: more addresses, or fresh ones. */
export const signDirectParts = (deps: Deps): Handler<typeof uploads.signDirectParts> =>
  async function signDirectParts(input, context) {
    const upload = await sentUpload(deps, await deps.store.findUpload(input.uploadId), input, context);
    checkOpen(upload);
    if (upload.lane !== 'direct' || upload.sealed) throw fail('upload_state_conflict', { detail: 'The parts of this upload are sent to /api/upload/multipart/part.' });
    return signParts(deps, upload, [...new Set(input.partNumbers)]);
  };

/** The first addresses, as init answers them. */
export async function directAnswer(deps: Deps, upload: Upload) {
  if (upload.lane !== 'direct' || upload.state !== 'initialized' || upload.sealed) return {};
  const count = Math.min(upload.partCount, directBatch);
  const { parts, expiresAt } = await signParts(deps, upload, Array.from({ length: count }, (_each, index) => index + 1));
  return { direct: { parts, expiresAt, ...(upload.partCount > count && { next: count + 1 }) } };
}

async function signParts(deps: Deps, upload: Upload, partNumbers: readonly number[]): Promise<Signed> {
  const session = (await sessionOf(deps, upload))!;
  const now = deps.clock();
  const seconds = Math.max(1, Math.min(longest, Math.floor((upload.expiresAt.getTime() - now) / 1_000)));
  const parts = await Promise.all(partNumbers.map(async (partNumber) => {
    const size = sizeOfPart(upload, partNumber);
    return { partNumber, url: await objectsOf(deps).signPartForClient(upload.mainKey, size, { session, partNumber }, seconds), headers: {}, size };
  }));
  return { uploadId: upload.id, parts, expiresAt: new Date(now + seconds * 1_000).toISOString() };
}
