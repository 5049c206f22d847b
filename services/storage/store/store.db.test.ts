/** The statements of storage against a real PostgreSQL: who wins each race, and what is left behind. */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database, Sql } from '../../../shared/db.ts';
import { eventOfService, type EventType } from '../../../shared/events.ts';
import { newId, randomText } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import type { NewTransfer } from '../domain/transfer.ts';
import { segmentsOf, type Upload } from '../domain/upload.ts';
import { openStore, type Store } from './store.ts';

let scratch: ScratchDatabase;
let database: Database;
let store: Store;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  database = scratch.database;
  store = openStore(database);
});
afterAll(() => scratch.drop());

const eventFor = (eventType: EventType, targetId: string) => eventOfService('storage', Date.now(), { eventType, targetType: 'file', targetId });
const run = <T extends object>(statement: (sql: Sql) => PromiseLike<T[]>) => database.run(statement);
const times = <T>(count: number, work: (index: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, index) => work(index)));

function newTransfer(facts: Partial<NewTransfer> = {}): NewTransfer {
  return {
    id: newId('transfer'), shareId: newId('share'), planId: newId('plan'), ownerId: 'own_a', agentId: null, kind: 'file', lane: 'single',
    filename: 'a.json', mimeType: 'application/json', size: 5, crc32: 1, sha256: null,
    release: { mode: 'open', allowedAgentIds: [], ttl: 600, metadata: {} }, ...facts,
  };
}

const storeSmall = (transfer: NewTransfer, bytes = Buffer.from('bytes')) => store.storeSmall(transfer, bytes, eventFor('transfer.stored', transfer.id));

async function initUpload(facts: { planId?: string; operationHash?: string | null; partCount?: number; ttl?: number } = {}): Promise<Upload> {
  const { planId = newId('plan'), operationHash = null, partCount = 2, ttl = 600 } = facts;
  const { id: transferId, kind: _kind, lane: _lane, crc32: _crc32, ...file } = newTransfer({ planId, size: partCount * 10 });
  const upload = {
    ...file, id: newId('upload'), transferId, planBound: true, lane: 'multipart' as const, partSize: 10, partCount, maxParallelParts: 4,
    mainKey: randomText(), operationHash, requestDigest: 'd', ttl,
  };
  const begun = await store.initUpload(upload, eventFor('upload.initialized', transferId));
  if (!begun) throw new Error('not begun');
  return begun;
}

async function putPart(upload: Upload, partNumber: number, sha256 = 'a'.repeat(64)): Promise<string> {
  const key = await store.claimPart({ upload, partNumber, spareKey: randomText(), checkAfterSeconds: 60 });
  if (!key || !(await store.recordPart({ uploadId: upload.id, partNumber, key }, { size: 10, crc32: 1, sha256 }))) throw new Error('not recorded');
  return key;
}

async function complete(id: string) {
  const upload = (await store.findUploadWithParts(id))!;
  const { transferId, ...file } = upload;
  const transfer = newTransfer({ planId: file.planId, id: transferId, lane: 'multipart', crc32: null });
  return store.completeUpload({ upload, transfer, segments: segmentsOf(upload, upload.parts), events: [eventFor('upload.completed', transferId), eventFor('transfer.stored', transferId)] });
}

async function eventsOf(targetId: string): Promise<string[]> {
  const rows = await run((sql) => sql<{ type: string }[]>`select event->>'eventType' as type from outbox where event->>'targetId' = ${targetId} order by 1`);
  return rows.map(({ type }) => type);
}

async function blobStates(keys: string[]): Promise<(string | undefined)[]> {
  const rows = await run((sql) => sql<{ key: string; state: string }[]>`select key, state from blobs where key = any(${keys})`);
  return keys.map((key) => rows.find((row) => row.key === key)?.state);
}

/** Begins work while another connection gives a file up, but has not committed that yet. */
async function whileGivenUp<T>(key: string, work: () => Promise<T>): Promise<T> {
  const { working } = await database.run((sql) => sql.begin(async (tx) => {
    await tx`update blobs set state = 'garbage', garbage_at = now() where key = ${key}`;
    const begun = work();
    await setTimeout(100);
    return { working: begun };
  }));
  return working;
}

describe('transfers', () => {
  test('a small asset comes back byte for byte and tells one event', async () => {
    const transfer = newTransfer({ filename: 'ü"\\.json' });
    const bytes = Buffer.from(Array.from({ length: 32_768 }, (_, index) => index % 256));
    const stored = await storeSmall(transfer, bytes);
    expect(stored).toMatchObject(transfer);
    expect(stored!.expiresAt.getTime() - stored!.createdAt.getTime()).toBeGreaterThan(599_000);
    expect((await store.openTransfer(transfer.id, true))!.bytes!.equals(bytes)).toBe(true);
    expect((await store.openTransfer(transfer.id, false))!.bytes).toBeNull();
    expect(await eventsOf(transfer.id)).toEqual(['transfer.stored']);
  });

  test('an empty asset is stored', async () => {
    const transfer = newTransfer({ size: 0 });
    await storeSmall(transfer, Buffer.alloc(0));
    expect((await store.openTransfer(transfer.id, true))!.bytes).toHaveLength(0);
  });

  test('of fifty with one plan one is stored', async () => {
    const transfer = newTransfer();
    const stored = await times(50, () => storeSmall(transfer));
    expect(stored.filter((row) => row !== undefined)).toHaveLength(1);
    expect(await eventsOf(transfer.id)).toEqual(['transfer.stored']);
  });

  test('a plan that began an upload stores nothing by the single lane, and the reverse', async () => {
    const upload = await initUpload();
    expect(await storeSmall(newTransfer({ planId: upload.planId }))).toBeUndefined();
    expect(await store.beginBlob(randomText(), upload.planId, 60)).toBe(false);
    const transfer = newTransfer();
    await storeSmall(transfer);
    await expect(initUpload({ planId: transfer.planId })).rejects.toThrow('not begun');
  });

  test('of two written files with one plan one is kept, and a file that was given up is none', async () => {
    const transfer = newTransfer();
    const keys = [randomText(), randomText(), randomText()];
    for (const key of keys) await store.beginBlob(key, transfer.planId, 60);
    await store.discardBlob(keys[2]!);
    const event = eventFor('transfer.stored', transfer.id);
    expect(await store.storeWritten(transfer, keys[2]!, event)).toBeUndefined();
    const stored = await Promise.all(keys.slice(0, 2).map((key) => store.storeWritten(transfer, key, { ...event, id: crypto.randomUUID() })));
    const winner = stored.findIndex((row) => row !== undefined);
    expect(stored.filter((row) => row !== undefined)).toHaveLength(1);
    expect(await blobStates([keys[winner]!, keys[1 - winner]!, keys[2]!])).toEqual(['live', 'writing', 'garbage']);
    expect(await store.discardBlob(keys[winner]!)).toBe(false);
    expect(stored[winner]!.segments).toEqual([{ key: keys[winner], offset: 0, size: 5 }]);
  });

  test('a file that is being given up is not finished, and waits to know', async () => {
    const [transfer, key] = [newTransfer(), randomText()];
    await store.beginBlob(key, transfer.planId, 0);
    const stored = await whileGivenUp(key, () => store.storeWritten(transfer, key, eventFor('transfer.stored', transfer.id)));
    expect(stored).toBeUndefined();
    expect(await blobStates([key])).toEqual(['garbage']);
  });

  test('a deleted transfer is gone at once, with its bytes, and told once', async () => {
    const transfer = newTransfer();
    await storeSmall(transfer);
    const deleted = await times(10, () => store.deleteTransfer(transfer.id, eventFor('transfer.deleted', transfer.id)));
    expect(deleted.filter(Boolean)).toHaveLength(1);
    expect(await store.openTransfer(transfer.id, true)).toBeUndefined();
    expect(await run((sql) => sql`select bytes from transfers where id = ${transfer.id}`)).toEqual([{ bytes: null }]);
    expect(await eventsOf(transfer.id)).toEqual(['transfer.deleted', 'transfer.stored']);
    expect(await store.findUnended(0, 500)).toContain(transfer.id);
    // That its share was created is old news and does not settle that it is to end.
    await store.settle([transfer.id], 'created');
    expect(await store.findUnended(0, 500)).toContain(transfer.id);
    await store.settle([transfer.id], 'ended');
    expect(await store.findUnended(0, 500)).not.toContain(transfer.id);
  });

  test('a transfer without a confirmed share is found until it is settled', async () => {
    const transfer = newTransfer();
    await storeSmall(transfer);
    expect((await store.findUnshared(0, 500)).map(({ id }) => id)).toContain(transfer.id);
    expect((await store.findUnshared(60, 500)).map(({ id }) => id)).not.toContain(transfer.id);
    await store.settle([transfer.id], 'created');
    expect((await store.findUnshared(0, 500)).map(({ id }) => id)).not.toContain(transfer.id);
  });
});

describe('uploads', () => {
  test('an operation and a plan each begin one upload', async () => {
    const operationHash = randomText();
    const begun = await times(10, () => initUpload({ operationHash }).catch(() => undefined));
    expect(begun.filter((upload) => upload !== undefined)).toHaveLength(1);
    const planId = newId('plan');
    const planned = await times(10, () => initUpload({ planId }).catch(() => undefined));
    expect(planned.filter((upload) => upload !== undefined)).toHaveLength(1);
  });

  test('the first attempt at a part has its place in the main file, every other a file of its own', async () => {
    const upload = await initUpload();
    const keys = await times(10, () => store.claimPart({ upload, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 }));
    expect(keys.filter((key) => key === upload.mainKey)).toHaveLength(1);
    expect(new Set(keys).size).toBe(10);
  });

  test('of attempts recorded at once exactly one is the part, and the last one counts', async () => {
    const upload = await initUpload();
    await times(10, (index) => putPart(upload, 1, String(index).repeat(64)));
    await putPart(upload, 1, 'f'.repeat(64));
    const { parts, partsVersion } = (await store.findUploadWithParts(upload.id))!;
    expect(parts).toMatchObject([{ partNumber: 1, sha256: 'f'.repeat(64) }]);
    expect(partsVersion).toBe(11);
  });

  test('an attempt is recorded once', async () => {
    const upload = await initUpload();
    const key = (await store.claimPart({ upload, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 }))!;
    const attempt = { uploadId: upload.id, partNumber: 1, key };
    const recorded = await times(5, () => store.recordPart(attempt, { size: 10, crc32: 1, sha256: 'b'.repeat(64) }));
    expect(recorded.filter(Boolean)).toHaveLength(1);
    expect(await store.findRecorded(attempt)).toMatchObject({ sha256: 'b'.repeat(64) });
  });

  test('an attempt that was given up is not recorded', async () => {
    const upload = await initUpload();
    await putPart(upload, 1);
    const spare = (await store.claimPart({ upload, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 }))!;
    await store.discardBlob(spare);
    expect(await store.recordPart({ uploadId: upload.id, partNumber: 1, key: spare }, { size: 10, crc32: 1, sha256: 'c'.repeat(64) })).toBe(false);
    expect(await store.discardBlob(upload.mainKey)).toBe(false);
  });

  test('an attempt that is being given up is not recorded, and waits to know', async () => {
    const upload = await initUpload();
    await putPart(upload, 1);
    const key = (await store.claimPart({ upload, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 }))!;
    const attempt = { uploadId: upload.id, partNumber: 1, key };
    expect(await whileGivenUp(key, () => store.recordPart(attempt, { size: 10, crc32: 1, sha256: 'c'.repeat(64) }))).toBe(false);
    expect(await blobStates([key])).toEqual(['garbage']);
  });

  test('of fifty completions one makes the transfer, and files it does not need become garbage', async () => {
    const upload = await initUpload();
    const zombie = (await store.claimPart({ upload, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 }))!;
    const [replaced, kept] = [await putPart(upload, 1), await putPart(upload, 1)];
    await putPart(upload, 2);
    const made = await times(50, () => complete(upload.id));
    const transfers = made.filter((row) => row !== undefined);
    expect(transfers).toHaveLength(1);
    expect(transfers[0]!.segments).toEqual([{ key: kept, offset: 0, size: 10 }, { key: upload.mainKey, offset: 10, size: 10 }]);
    expect(zombie).toBe(upload.mainKey);
    expect(await blobStates([upload.mainKey, kept, replaced])).toEqual(['live', 'live', 'garbage']);
    expect(await eventsOf(upload.transferId)).toEqual(['transfer.stored', 'upload.completed', 'upload.initialized']);
    expect((await store.findUpload(upload.id))!.state).toBe('completing');
    await store.settle([upload.transferId], 'created');
    expect((await store.findUpload(upload.id))!.state).toBe('completed');
    await store.deleteTransfer(upload.transferId, eventFor('transfer.deleted', upload.transferId));
    expect(await blobStates([upload.mainKey, kept])).toEqual(['garbage', 'garbage']);
  });

  test('a part that arrives between the look and the completion makes it begin again', async () => {
    const upload = await initUpload();
    await Promise.all([putPart(upload, 1), putPart(upload, 2)]);
    const before = (await store.findUploadWithParts(upload.id))!;
    await putPart(upload, 1);
    const transfer = newTransfer({ id: upload.transferId, planId: upload.planId });
    expect(await store.completeUpload({ upload: before, transfer, segments: [], events: [] })).toBeUndefined();
    expect((await store.findUpload(upload.id))!.state).toBe('initialized');
  });

  test('completion, abort and parts never cross', async () => {
    for (let round = 0; round < 20; round += 1) {
      const upload = await initUpload();
      await Promise.all([putPart(upload, 1), putPart(upload, 2)]);
      const spare = (await store.claimPart({ upload, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 }))!;
      const [completed, aborted, recorded] = await Promise.all([
        complete(upload.id),
        store.abortUpload(upload.id, eventFor('upload.aborted', upload.transferId)),
        store.recordPart({ uploadId: upload.id, partNumber: 1, key: spare }, { size: 10, crc32: 1, sha256: 'd'.repeat(64) }),
      ]);
      const { state } = (await store.findUpload(upload.id))!;
      expect(Boolean(completed) && aborted).toBe(false);
      expect(state).toBe(completed ? 'completing' : aborted ? 'aborted' : 'initialized');
      if (completed) expect(completed.segments!.some(({ key }) => key === spare)).toBe(recorded);
    }
  });

  test('a plan that made a transfer meanwhile completes no upload', async () => {
    const upload = await initUpload({ partCount: 1 });
    await putPart(upload, 1);
    const key = randomText();
    await run((sql) => sql`insert into blobs (key) values (${key})`);
    await store.storeWritten(newTransfer({ id: upload.transferId, planId: upload.planId }), key, eventFor('transfer.stored', upload.transferId));
    await expect(complete(upload.id)).rejects.toMatchObject({ code: 'plan_already_used' });
    expect((await store.findUpload(upload.id))!.state).toBe('initialized');
  });

  test('an upload past its expiry takes nothing, swept or not', async () => {
    const upload = await initUpload({ partCount: 1 });
    await putPart(upload, 1);
    const spare = (await store.claimPart({ upload, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 }))!;
    await run((sql) => sql`update uploads set expires_at = now() - interval '1 second' where id = ${upload.id}`);
    expect((await store.findUpload(upload.id))!.state).toBe('expired');
    expect(await store.claimPart({ upload, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 })).toBeUndefined();
    expect(await store.recordPart({ uploadId: upload.id, partNumber: 1, key: spare }, { size: 10, crc32: 1, sha256: 'd'.repeat(64) })).toBe(false);
    expect(await complete(upload.id)).toBeUndefined();
    expect(await store.abortUpload(upload.id, eventFor('upload.aborted', upload.transferId))).toBe(false);
  });
});

describe('sweeping', () => {
  test('what is past its expiry ends once, whoever sweeps, with an event of its own for each', async () => {
    const transfers = await times(20, async () => {
      const transfer = newTransfer({ agentId: 'agt_x' });
      await storeSmall(transfer);
      return transfer.id;
    });
    const upload = await initUpload();
    await run((sql) => sql`update transfers set expires_at = now() - interval '1 second' where id = any(${transfers})`);
    await run((sql) => sql`update uploads set expires_at = now() - interval '1 second' where id = ${upload.id}`);
    expect(await store.openTransfer(transfers[0]!, true)).toBeUndefined();
    const ended = await times(4, () => store.expireTransfers(eventOfService('storage', Date.now(), { eventType: 'transfer.expired', targetType: 'file', targetId: null }), 500));
    expect(ended.reduce((sum, count) => sum + count, 0)).toBe(20);
    for (const id of transfers) expect(await eventsOf(id)).toEqual(['transfer.expired', 'transfer.stored']);
    const [told] = await run((sql) => sql<{ id: string; event: object }[]>`select id, event from outbox where event->>'targetId' = ${transfers[0]!} and event->>'eventType' = 'transfer.expired'`);
    expect(told!.event).toMatchObject({ id: told!.id, ownerId: 'own_a', agentId: 'agt_x', actor: { type: 'service', id: 'storage' }, data: { size: 5, lane: 'single' } });
    await store.expireUploads(eventOfService('storage', Date.now(), { eventType: 'upload.expired', targetType: 'file', targetId: null }), 500);
    expect(await eventsOf(upload.transferId)).toEqual(['upload.expired', 'upload.initialized']);
    expect(await blobStates([upload.mainKey])).toEqual(['garbage']);
  });

  test('garbage is removed, remembered for a while and then forgotten', async () => {
    const key = randomText();
    await store.beginBlob(key, newId('plan'), 0);
    expect(await store.findUnfinished(500)).toContain(key);
    await store.checkLater([key], 60);
    expect(await store.findUnfinished(500)).not.toContain(key);
    await store.discardBlobs([key]);
    expect(await store.findGarbage(500)).toContain(key);
    await store.markRemoved([key]);
    expect(await store.findGarbage(500)).not.toContain(key);
    expect(await store.findRemoved(60, 500)).not.toContain(key);
    expect(await store.findRemoved(0, 500)).toContain(key);
    await store.forgetBlobs([key]);
    expect(await blobStates([key])).toEqual([undefined]);
  });

  test('what ended is remembered for its time and then forgotten', async () => {
    const transfer = newTransfer();
    await storeSmall(transfer);
    await store.deleteTransfer(transfer.id, eventFor('transfer.deleted', transfer.id));
    const upload = await initUpload();
    await putPart(upload, 1);
    await store.abortUpload(upload.id, eventFor('upload.aborted', upload.transferId));
    await Promise.all([store.purgeParts(60, 500), store.purgeUploads(60, 500), store.purgeTransfers(60, 500)]);
    expect(await store.findUpload(upload.id)).toBeDefined();
    await run((sql) => sql`update uploads set ended_at = now() - interval '2 minutes' where id = ${upload.id}`);
    await run((sql) => sql`update transfers set ended_at = now() - interval '2 minutes' where id = ${transfer.id}`);
    await store.purgeUploads(60, 500);
    expect(await store.findUpload(upload.id)).toBeDefined();
    await store.purgeParts(60, 500);
    await store.purgeUploads(60, 500);
    await store.purgeTransfers(60, 500);
    expect(await store.findUpload(upload.id)).toBeUndefined();
    expect(await store.findTransfer(transfer.id)).toBeUndefined();
  });
});
