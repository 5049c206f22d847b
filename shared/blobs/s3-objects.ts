/** What only an object store does: sessions of parts, presigned addresses, joining pieces. */
import { AbortMultipartUploadCommand, CompleteMultipartUploadCommand, CreateMultipartUploadCommand, GetObjectCommand, HeadObjectCommand, ListPartsCommand, PutObjectCommand, UploadPartCommand, type S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { fail } from '../errors.ts';
import type { ObjectStore, SessionPart, StoredPart } from './blobs.ts';
import { clientFailure, isGone, type S3Clients } from './s3-client.ts';
import { joinPieces } from './s3-join.ts';
import { unquoted } from './s3-put.ts';
import { sizeOfAll } from './segments.ts';

/** An object of the store's bucket. */
export interface Place {
  readonly Bucket: string;
  readonly Key: string;
}

/** Seconds within which the gateway begins to use an address. */
const ownSeconds = 120;

export function openObjects(clients: S3Clients, placeOf: (key: string) => Place): ObjectStore {
  const { own, patient, signing } = clients;
  return {
    async begin(key) {
      const { UploadId } = await own.send(new CreateMultipartUploadCommand(placeOf(key))).catch(rethrow);
      return UploadId!;
    },
    cancel: (key, session) => cancelSession(own, placeOf(key), session),
    async listParts(key, session) {
      return listAll(own, { ...placeOf(key), UploadId: session }).catch((error: unknown) => {
        if (isGone(error)) return undefined;
        throw clientFailure(error);
      });
    },
    async complete(key, session, parts) {
      const MultipartUpload = { Parts: parts.map(({ partNumber, etag }) => ({ PartNumber: partNumber, ETag: `"${etag}"` })) };
      await patient.send(new CompleteMultipartUploadCommand({ ...placeOf(key), UploadId: session, MultipartUpload }))
        .catch((error: unknown) => checkCompleted({ own, place: placeOf(key) }, error, sizeOfAll(parts)));
    },
    join: (segments, key) => joinPieces({ client: patient, placeOf }, segments, key),
    signWrite: (key, size, part) => signWrite(signing, placeOf(key), { size, part, seconds: ownSeconds }),
    signPartForClient: (key, size, part, seconds) => signWrite(clients.publicSigning, placeOf(key), { size, part, seconds }),
    signRead: (key) => getSignedUrl(signing, new GetObjectCommand(placeOf(key)), { expiresIn: ownSeconds }),
  };
}

/** Page by page; some stores name a next page after the last one, so only `IsTruncated` counts. */
async function listAll(client: S3Client, session: Place & { readonly UploadId: string }): Promise<StoredPart[]> {
  const parts: StoredPart[] = [];
  for (let marker: string | undefined, more = true; more;) {
    const page = await client.send(new ListPartsCommand({ ...session, ...(marker && { PartNumberMarker: marker }) }));
    for (const { PartNumber, Size, ETag } of page.Parts ?? []) parts.push({ partNumber: PartNumber!, size: Size!, etag: unquoted(ETag!) });
    marker = page.NextPartNumberMarker;
    more = page.IsTruncated === true;
  }
  return parts;
}

/** Parts that were on their way may still arrive after it; the sweeper removes twice, with a pause. */
export async function cancelSession(client: S3Client, place: Place, session: string): Promise<void> {
  await client.send(new AbortMultipartUploadCommand({ ...place, UploadId: session })).catch((error: unknown) => { if (!isGone(error)) throw clientFailure(error); });
}

function rethrow(error: unknown): never {
  throw clientFailure(error);
}

/** Promise: completing twice does no harm. A session that is gone has become its object, or was given up by the store. */
async function checkCompleted({ own, place }: { own: S3Client; place: Place }, error: unknown, size: number): Promise<void> {
  const { name } = error as Error;
  if (name === 'InvalidPart' || name === 'InvalidPartOrder') throw fail('upload_state_conflict', { detail: 'A part is not stored as it was answered. Read the status, and send it again.' }, clientFailure(error));
  if (name === 'EntityTooSmall') throw fail('part_size_mismatch', { detail: 'A part is smaller than the object store allows.' }, clientFailure(error));
  if (!isGone(error)) throw clientFailure(error);
  const found = await own.send(new HeadObjectCommand(place)).catch((failure: unknown) => { if (!isGone(failure)) throw clientFailure(failure); });
  if (found?.ContentLength !== size) throw fail('upload_expired', { detail: 'The object store has given up the parts.' }, clientFailure(error));
}

/** The length is part of the signature: a store that checks signatures takes exactly so many bytes. */
function signWrite(client: S3Client, place: Place, { size, part, seconds }: { size: number; part: SessionPart | undefined; seconds: number }): Promise<string> {
  const signing = { expiresIn: seconds };
  if (!part) return getSignedUrl(client, new PutObjectCommand({ ...place, ContentLength: size }), signing);
  const { session, partNumber } = part;
  return getSignedUrl(client, new UploadPartCommand({ ...place, UploadId: session, PartNumber: partNumber, ContentLength: size }), signing);
}
