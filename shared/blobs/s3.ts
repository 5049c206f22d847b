/** The s3 blob driver: objects in a bucket. Only storage opens it, since only storage has credentials; bytes move by tickets. */
import { createHash } from 'node:crypto';
import { DeleteObjectCommand, HeadObjectCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { Writable } from 'node:stream';
import type { BlobStore, ObjectStore, Segment } from './blobs.ts';
import { clientFailure, isGone, openClients, type S3Clients, type S3Place } from './s3-client.ts';
import { openS3Http } from './s3-http.ts';
import { cancelSession, openObjects, type Place } from './s3-objects.ts';
import { s3Reader } from './s3-read.ts';
import { sizeOfAll } from './segments.ts';

const MiB = 1_024 ** 2;
/** What S3 allows of one request, and of the number of parts. */
const largestPut = 5 * 1_024 * MiB;
const mostParts = 10_000;
/** A stream's part is held in memory. */
const smallestPart = 5 * MiB;
const largestPart = 64 * MiB;
/** Addresses that a read ticket has from the start; the others are asked for when a reader comes to them. */
const urlsInTicket = 16;

export interface S3Blobs extends BlobStore {
  readonly objects: ObjectStore;
  close(): void;
}

/** @param touchMs how often a writer must say that it is still writing */
export function openS3Blobs(place: S3Place, touchMs: number): S3Blobs {
  const clients = openClients(place);
  const placeOf = (key: string): Place => ({ Bucket: place.bucket, Key: place.prefix + checked(key) });
  const objects = openObjects(clients, placeOf);
  const ticketToRead = makeReadTickets(objects);
  const reader = s3Reader(objects, openS3Http());
  return {
    objects,
    ticketToRead,
    async ticketToWrite({ key, offset, maxBytes, size, part }) {
      checked(key);
      if (offset !== 0 && !part) throw new Error('an object is written from its start');
      const put = size !== undefined && size <= largestPut ? { url: await objects.signWrite(key, size, part), size } : undefined;
      return { driver: 's3', key, maxBytes, touchMs, partSize: Math.min(largestPart, Math.max(smallestPart, Math.ceil(maxBytes / mostParts))), ...(put && { put }) };
    },
    async remove(key) { await removeObject(clients, placeOf(key)); },
    async lastTouched(key) {
      const found = await clients.own.send(new HeadObjectCommand(placeOf(key))).catch((error: unknown) => { if (!isGone(error)) throw clientFailure(error); });
      return found?.LastModified?.getTime();
    },
    async hash(segments) {
      const hash = createHash('sha256');
      const blob = await reader.open(await ticketToRead(segments));
      await blob.pipe({ start: 0, end: sizeOfAll(segments) }, new Writable({ write(chunk: Buffer, _encoding, done) { hash.update(chunk); done(); } }));
      return hash.digest('hex');
    },
    close: clients.close,
  };
}

/** Keys are made by us: letters and digits. */
function checked(key: string): string {
  if (!/^[A-Za-z0-9]{3,128}$/.test(key)) throw new Error('a blob key must be letters and digits');
  return key;
}

function makeReadTickets(objects: ObjectStore): BlobStore['ticketToRead'] {
  return async (segments: readonly Segment[]) => {
    const keys = [...new Set(segments.map(({ key }) => checked(key)))].slice(0, urlsInTicket);
    const urls = await Promise.all(keys.map(async (key) => [key, await objects.signRead(key)] as const));
    return { driver: 's3', segments: [...segments], urls: Object.fromEntries(urls) };
  };
}

/** The object goes, and every session of its key: one that a crash left behind is known by nothing else. */
async function removeObject({ own }: S3Clients, place: Place): Promise<void> {
  const { Bucket, Key } = place;
  try {
    await own.send(new DeleteObjectCommand(place));
    const { Uploads = [] } = await own.send(new ListMultipartUploadsCommand({ Bucket, Prefix: Key }));
    await Promise.all(Uploads.filter((upload) => upload.Key === Key).map(({ UploadId }) => cancelSession(own, place, UploadId!)));
  } catch (error) {
    if (!isGone(error)) throw clientFailure(error);
  }
}
