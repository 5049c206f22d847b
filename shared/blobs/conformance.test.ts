/** Every driver against the same promises. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import { noObjectStore, objectStoreGiven } from '../../tests/support/object-store.ts';
import { fail } from '../errors.ts';
import type { BlobDriver, ObjectStore } from './blobs.ts';
import { describeDriver } from './conformance.ts';
import { openFsBlobs } from './fs.ts';
import { openS3Http } from './s3-http.ts';
import { s3Reader } from './s3-read.ts';
import { s3Writer } from './s3-write.ts';
import { openS3Blobs } from './s3.ts';
import type { StoreCalls } from './store-calls.ts';

const roots: string[] = [];

afterAll(async () => {
  await Promise.all(roots.map((root) => rm(root, { recursive: true, force: true })));
});

describeDriver('fs', 'files', async () => {
  const root = await mkdtemp(join(tmpdir(), 'blobs-'));
  roots.push(root);
  return openFsBlobs(root);
});

/** What the storage service answers, without its tables. The blob `unwanted` was given up. */
function callsOf(objects: ObjectStore): StoreCalls {
  const sessions = new Map<string, Promise<string>>();
  const sessionOf = (key: string) => {
    if (!sessions.has(key)) sessions.set(key, objects.begin(key));
    return sessions.get(key)!;
  };
  return {
    touch: async (key) => key !== 'unwanted',
    async signWrite({ key, size, partNumber }) {
      if (key === 'unwanted') throw fail('upload_expired');
      return objects.signWrite(key, size, partNumber === undefined ? undefined : { session: await sessionOf(key), partNumber });
    },
    seal: async (key, parts) => objects.complete(key, await sessionOf(key), parts),
    signRead: objects.signRead,
  };
}

const store = objectStoreGiven();
if (store) {
  for (const checksums of ['when_required', 'when_supported'] as const) {
    describeDriver(`s3, checksums ${checksums}`, 'objects', async (): Promise<BlobDriver> => {
      const blobs = openS3Blobs({ ...store.newPlace(), checksums }, 1_000);
      const calls = callsOf(blobs.objects);
      const http = openS3Http();
      return { ...blobs, ...s3Reader(calls, http), ...s3Writer(calls, http) };
    });
  }
} else {
  test.skip(`s3: ${noObjectStore}`, () => undefined);
}
