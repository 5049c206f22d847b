/** Uploads that an object store puts together, against a real PostgreSQL: nothing changes meanwhile, and each step counts once. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventOfService } from '../../../shared/events.ts';
import { newId, randomText } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { segmentsOf } from '../domain/upload.ts';
import { openStore, type Store } from './store.ts';
import type { NewUpload, UploadWithParts } from './uploads.ts';

let scratch: ScratchDatabase;
let store: Store;
beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  store = openStore(scratch.database);
});
afterAll(() => scratch.drop());

const event = (targetId: string) => eventOfService('storage', Date.now(), { eventType: 'upload.initialized', targetType: 'file', targetId });
const read = async (id: string): Promise<UploadWithParts> => (await store.findUploadWithParts(id))!;
const record = (uploadId: string, partNumber: number, key: string) => store.recordPart({ uploadId, partNumber, key }, { size: 10, crc32: 1, sha256: 'a'.repeat(64), etag: `etag${partNumber}` });
const claim = (upload: { id: string }, partNumber: number, spareOnly = false) => store.claimPart({ upload, partNumber, spareKey: randomText(), checkAfterSeconds: 60, spareOnly });

async function begin(lane: NewUpload['lane'] = 'multipart') {
  const transferId = newId('transfer');
  const upload: NewUpload = {
    id: newId('upload'), transferId, shareId: newId('share'), planId: newId('plan'), planBound: false, lane, ownerId: null, agentId: null,
    filename: 'a', mimeType: 'text/plain', size: 30, sha256: null, release: { mode: 'open', allowedAgentIds: [], ttl: 600, metadata: {} },
    partSize: 10, partCount: 3, maxParallelParts: 4, mainKey: randomText(), operationHash: null, requestDigest: 'd', ttl: 600,
  };
  await store.initUpload(upload, event(transferId));
  return upload;
}

/** An upload whose three parts are recorded. */
async function arrived() {
  const upload = await begin();
  for (const partNumber of [1, 2, 3]) expect(await record(upload.id, partNumber, (await claim(upload, partNumber))!)).toBe(true);
  return read(upload.id);
}

describe('an upload that the store puts together', () => {
  test('begins once, and only as it was read', async () => {
    const upload = await arrived();
    const versions = await Promise.all(Array.from({ length: 10 }, () => store.beginAssembly(upload, [])));
    expect(versions.filter((version) => version !== undefined)).toHaveLength(1);
    expect(await read(upload.id)).toMatchObject({ state: 'assembling', sealed: false });
  });

  test('takes no part until it is open again, and then only in files of their own', async () => {
    const upload = await arrived();
    const late = (await claim(upload, 1))!;
    const partsVersion = (await store.beginAssembly(upload, []))!;
    expect(await claim(upload, 1)).toBeUndefined();
    expect(await record(upload.id, 1, late)).toBe(false);
    await store.sealUpload({ ...upload, partsVersion }, [{ partNumber: 1, place: 0 }, { partNumber: 2, place: 10 }, { partNumber: 3, place: 20 }]);
    const sealed = await read(upload.id);
    expect(sealed).toMatchObject({ state: 'initialized', sealed: true, partsVersion });
    expect(segmentsOf(sealed, sealed.parts)).toEqual([{ key: upload.mainKey, offset: 0, size: 30 }]);
    const spare = (await claim(upload, 1, true))!;
    expect(spare).not.toBe(upload.mainKey);
    expect(await record(upload.id, 1, spare)).toBe(true);
  });

  test('a first attempt that comes after the store is done has no place any more', async () => {
    const upload = await begin();
    const slow = (await claim(upload, 1))!;
    for (const partNumber of [1, 2, 3]) await record(upload.id, partNumber, (await claim(upload, partNumber))!);
    const before = await read(upload.id);
    const partsVersion = (await store.beginAssembly(before, []))!;
    await store.sealUpload({ ...before, partsVersion }, [{ partNumber: 2, place: 0 }, { partNumber: 3, place: 10 }]);
    expect(slow).toBe(upload.mainKey);
    expect(await record(upload.id, 1, slow)).toBe(false);
    const { parts } = await read(upload.id);
    expect(segmentsOf(upload, parts)).toEqual([{ key: parts[0]!.key, offset: 0, size: 10 }, { key: upload.mainKey, offset: 0, size: 20 }]);
  });

  test('refused by the store it is open again, without the parts that are lost, which may come again', async () => {
    const upload = await arrived();
    const partsVersion = (await store.beginAssembly(upload, []))!;
    await store.reopenUpload({ ...upload, partsVersion }, [2]);
    const open = await read(upload.id);
    expect(open).toMatchObject({ state: 'initialized', sealed: false, parts: [{ partNumber: 1 }, { partNumber: 3 }] });
    expect(await claim(upload, 2)).toBe(upload.mainKey);
    // A late answer of the first try changes nothing.
    await store.sealUpload({ ...upload, partsVersion }, [{ partNumber: 1, place: 0 }]);
    expect(await read(upload.id)).toMatchObject({ sealed: false });
  });

  test('parts of the direct lane are recorded when it begins, and forgotten when it is refused', async () => {
    const upload = await begin('direct');
    const listed = [1, 2, 3].map((partNumber) => ({ partNumber, size: 10, etag: `store${partNumber}` }));
    const partsVersion = (await store.beginAssembly(await read(upload.id), listed))!;
    expect((await read(upload.id)).parts).toEqual(listed.map((part) => ({ ...part, key: upload.mainKey, sha256: null, crc32: null, place: null })));
    await store.reopenUpload({ id: upload.id, partsVersion }, [1, 2, 3]);
    expect((await read(upload.id)).parts).toEqual([]);
  });

  test('aborted or expired meanwhile, it stays so', async () => {
    const upload = await arrived();
    const partsVersion = (await store.beginAssembly(upload, []))!;
    expect(await store.abortUpload(upload.id, event(upload.transferId))).toBe(true);
    await store.sealUpload({ ...upload, partsVersion }, []);
    expect(await read(upload.id)).toMatchObject({ state: 'aborted', sealed: false });
    const other = await arrived();
    await store.beginAssembly(other, []);
    await scratch.database.run((sql) => sql`update uploads set expires_at = now() where id = ${other.id}`);
    expect((await read(other.id)).state).toBe('expired');
    expect(await store.expireUploads(event(other.transferId), 10)).toBe(1);
  });

  test('left behind it is found, and put behind the others when it fails again', async () => {
    const upload = await arrived();
    await store.beginAssembly(upload, []);
    expect(await store.findAssembling(60, 10)).not.toContain(upload.id);
    expect(await store.findAssembling(0, 10)).toContain(upload.id);
    await scratch.database.run((sql) => sql`update uploads set assembling_since = now() - interval '1 hour' where id = ${upload.id}`);
    await store.assembleLater([upload.id]);
    expect(await store.findAssembling(60, 10)).not.toContain(upload.id);
  });
});

describe('sessions and touches', () => {
  test('of sessions begun at once the first counts, and a file given up has none', async () => {
    const key = randomText();
    await store.beginBlob(key, newId('plan'), 60);
    expect(await store.findSession(key)).toBeUndefined();
    const kept = await Promise.all(['one', 'two', 'three'].map((session) => store.keepSession(key, session)));
    expect(new Set(kept).size).toBe(1);
    expect(await store.findSession(key)).toBe(kept[0]);
    await store.discardBlob(key);
    expect(await store.keepSession(key, 'late')).toBeUndefined();
  });

  test('a file that is touched is looked at later, one that was given up says so, and garbage has its grace', async () => {
    const key = randomText();
    await store.beginBlob(key, newId('plan'), 0);
    expect(await store.findUnfinished(100)).toContain(key);
    expect(await store.touchBlob(key, 60)).toBe(true);
    expect(await store.findUnfinished(100)).not.toContain(key);
    await store.discardBlob(key);
    expect(await store.touchBlob(key, 60)).toBe(false);
    expect(await store.findGarbage(100, 60)).not.toContain(key);
    expect(await store.findGarbage(100)).toContain(key);
  });
});
