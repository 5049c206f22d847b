/** The statements of folders and of their queue against a real PostgreSQL: what is let in, who wins, and what ends together. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../shared/db.ts';
import { eventOfService, type EventType } from '../../../shared/events.ts';
import { newId, randomText } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import type { Command } from '../domain/completion.ts';
import { namesOf } from '../domain/folder.ts';
import { segmentsOf } from '../domain/upload.ts';
import type { NewFile } from './folders.ts';
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

const event = (eventType: EventType) => eventOfService('storage', Date.now(), { eventType, targetType: 'folder', targetId: null });
const times = <T>(count: number, work: (index: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, index) => work(index)));

async function makeFolder(): Promise<string> {
  const id = newId('transfer');
  const release = { mode: 'open' as const, allowedAgentIds: [], ttl: 600, metadata: {} };
  const folder = { id, shareId: newId('share'), planId: newId('plan'), ownerId: null, agentId: null, kind: 'folder' as const, lane: 'folder' as const, filename: 'f', mimeType: 'application/zip', size: 0, crc32: null, sha256: null, release };
  await store.createFolder(folder, { partSize: 10, maxParallelParts: 4, maxFileBytes: 1_000 }, event('folder.created'));
  return id;
}

function newFile(folderId: string, path: string, facts: Partial<NewFile> = {}): NewFile {
  return {
    folderId, fileId: newId('file'), uploadId: newId('upload'), path, size: 10, mimeType: 'text/plain', ...namesOf(path), partSize: 10, partCount: 1,
    mainKey: randomText(), lane: 'multipart', operationHash: null, requestDigest: 'd', ttl: 600, maxFiles: 100, maxBytes: 1_000, ...facts,
  };
}

const declare = (file: NewFile) => store.declareFile(file, event('upload.initialized'));

/** A file with its only part sent, and the command to complete it. */
async function sendFile(folderId: string, path = 'a'): Promise<Command> {
  const { uploadId, fileId, ...file } = newFile(folderId, path);
  await declare({ ...file, uploadId, fileId });
  const key = await store.claimPart({ upload: (await store.findUpload(uploadId))!, partNumber: 1, spareKey: randomText(), checkAfterSeconds: 60 });
  await store.recordPart({ uploadId, partNumber: 1, key: key! }, { size: 10, crc32: 1, sha256: 'a'.repeat(64) });
  return { folderId, fileId, uploadId, operationId: randomText() };
}

async function storeFile(command: Command): Promise<boolean> {
  const upload = (await store.findUploadWithParts(command.uploadId))!;
  return store.storeFile({ upload, segments: segmentsOf(upload, upload.parts), crc32: 1, sha256: null }, command, event('folder.file_ready'));
}

describe('declaring files', () => {
  test('stops at the folder\'s count and sum, and goes on when something has ended', async () => {
    const folderId = await makeFolder();
    const first = newFile(folderId, 'first', { maxFiles: 2 });
    expect([await declare(first), await declare(newFile(folderId, 'b', { maxFiles: 2 })), await declare(newFile(folderId, 'c', { maxFiles: 2 }))]).toEqual(['declared', 'declared', 'too_many_files']);
    expect(await declare(newFile(folderId, 'c', { maxBytes: 29 }))).toBe('too_many_bytes');
    await store.abortUpload(first.uploadId, event('upload.aborted'));
    expect(await declare(newFile(folderId, 'c', { maxFiles: 2, maxBytes: 20 }))).toBe('declared');
  });

  test('of many at once keeps to the count', async () => {
    const folderId = await makeFolder();
    const outcomes = await times(20, (index) => declare(newFile(folderId, `${index}`, { maxFiles: 7 })));
    expect(outcomes.filter((outcome) => outcome === 'declared').length).toBe(7);
  });

  test('of a file and of files below it lets in one kind', async () => {
    for (let round = 0; round < 5; round += 1) {
      const folderId = await makeFolder();
      const outcomes = await times(10, (index) => declare(newFile(folderId, index % 2 ? 'a' : `A/${index}`)));
      const [files, below] = [1, 0].map((kind) => outcomes.filter((outcome, index) => index % 2 === kind && outcome === 'declared').length);
      expect([[1, 0], [0, 5]]).toContainEqual([files, below]);
    }
  });

  test('of names that are close to each other lets in all', async () => {
    const folderId = await makeFolder();
    for (const path of ['a/b', 'a.txt', 'a0', 'a-', 'ab/c', 'a/bc', 'a/b0/c']) expect(await declare(newFile(folderId, path)), path).toBe('declared');
    for (const path of ['A', 'a/B/c', 'AB', 'a/b0']) expect(await declare(newFile(folderId, path)), path).toBe('path_taken');
  });
});

describe('the queue', () => {
  const accept = (command: Command) => store.acceptCompletion(command, { requestId: 'r', traceparent: '' });

  test('gives each command to one of those who ask, and again when its lease has ended', async () => {
    const folderId = await makeFolder();
    const commands = await times(10, (index) => sendFile(folderId, `${index}`));
    await times(10, (index) => accept(commands[index]!));
    const claimed = (await times(5, () => store.claimCompletions(4, 60))).flat();
    expect(claimed.map(({ operationId }) => operationId).sort()).toEqual(commands.map(({ operationId }) => operationId).sort());
    expect(await store.claimCompletions(100, 60)).toEqual([]);
    await database.run((sql) => sql`update completions set run_after = now() where folder_id = ${folderId}`);
    const again = await store.claimCompletions(100, 60);
    expect(again.map(({ attempts }) => attempts)).toEqual(Array(10).fill(2));
  });

  test('makes a file once, and its command ready with it, however many carry it out', async () => {
    const command = await sendFile(await makeFolder());
    await accept(command);
    expect((await times(8, () => storeFile(command).catch(() => false))).filter(Boolean).length).toBe(1);
    expect(await store.findCompletion(command.folderId, command.operationId)).toMatchObject({ state: 'ready' });
    const told = await database.run((sql) => sql`select from outbox where event->>'eventType' = 'folder.file_ready'`);
    expect(told.length).toBe(1);
  });

  test('keeps a command as it was first, and one that is done as it ended', async () => {
    const command = await sendFile(await makeFolder());
    await accept(command);
    expect(await accept({ ...command, fileId: 'fil_other' })).toMatchObject({ fileId: command.fileId });
    await store.endCompletion(command, { code: 'invalid_request', detail: 'parts' });
    await store.endCompletion(command, null);
    await store.retryCompletion(command, 0);
    expect(await store.findCompletion(command.folderId, command.operationId)).toMatchObject({ state: 'failed', error: { code: 'invalid_request' } });
  });
});

describe('a folder that ends', () => {
  test('takes no file any more, and lets go of all that it had', async () => {
    const folderId = await makeFolder();
    const [ready, sent] = [await sendFile(folderId, 'ready'), await sendFile(folderId, 'sent')];
    expect(await storeFile(ready)).toBe(true);
    expect((await store.openArchive(folderId))?.entries).toBe(1);
    await store.deleteTransfer(folderId, event('transfer.deleted'));
    expect(await storeFile(sent)).toBe(false);
    expect(await declare(newFile(folderId, 'late'))).toBe('folder_gone');
    expect(await store.openTransfer(ready.fileId, false)).toBeUndefined();
    expect(await store.openArchive(folderId)).toBeUndefined();
    while (await store.endFiles(1) > 0) { /* until nothing is left */ }
    const [left] = await database.run((sql) => sql<{ files: number; folders: number; live: number }[]>`
      select (select count(*) from folder_files where folder_id = ${folderId} and gone_at is null)::int as files, (select count(*) from folders where id = ${folderId})::int as folders,
        (select count(*) from blobs where upload_id in (${ready.uploadId}, ${sent.uploadId}) and state <> 'garbage')::int as live`);
    expect(left).toEqual({ files: 0, folders: 0, live: 0 });
    expect((await store.findUpload(sent.uploadId))?.state).toBe('expired');
  });

  test('by its expiry ends the same way, and its files not before', async () => {
    const folderId = await makeFolder();
    const ready = await sendFile(folderId);
    await storeFile(ready);
    // The file's own expiry is not what counts: its folder may be kept longer.
    await database.run((sql) => sql`update transfers set expires_at = now() - interval '1 second' where id = ${ready.fileId}`);
    await store.expireTransfers(event('transfer.expired'), 100);
    expect(await store.openTransfer(ready.fileId, false)).toMatchObject({ folderId });
    await database.run((sql) => sql`update transfers set expires_at = now() - interval '1 second' where id = ${folderId}`);
    expect(await store.openTransfer(ready.fileId, false)).toBeUndefined();
    await store.expireTransfers(event('transfer.expired'), 100);
    expect(await store.endFiles(100)).toBe(1);
    expect(await store.endFiles(100)).toBe(1);
    expect((await store.findTransfer(ready.fileId))?.endedAt).not.toBeNull();
  });

  test('is forgotten some time afterwards', async () => {
    const folderId = await makeFolder();
    await sendFile(folderId);
    await store.deleteTransfer(folderId, event('transfer.deleted'));
    await store.endFiles(100);
    expect(await store.purgeFiles(60, 100)).toBe(0);
    expect(await store.purgeFiles(0, 1_000)).toBeGreaterThan(0);
  });
});
