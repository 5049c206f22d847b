/** Completing the files of a folder: a durable command that is accepted at once and polled until it is done (interface chapters: Folders, States and transitions). */
import { randomBytes, randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { folderLane, type Folder } from '../support/folder-lane.ts';
import { multipartLane } from '../support/multipart-lane.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must, events } = exchange;
const lane = folderLane(exchange);
const parts = multipartLane(exchange);

let session: string;
let folder: Folder;
beforeAll(async () => {
  session = await exchange.signIn();
  folder = await lane.create({}, session);
});

const direct = (json: object) => call(`/api/folder/${folder.folderId}/upload-direct-complete`, { json, bearer: session });
const poll = (query: string) => call(`/api/folder/${folder.folderId}/upload-status${query}`, { bearer: session });
const token = () => ({ headers: { 'x-delete-token': folder.deleteToken } });

describe('POST /api/folder/{folderId}/upload-complete', () => {
  test('answers 202 with where and when to ask, and is carried out', async () => {
    const declared = await lane.send(folder, 'a.txt', 'content of a');
    const operationId = 'complete a/1?&';
    const refused = await lane.complete(folder, declared, operationId);
    expectRefusal(refused, 400, 'invalid_request', 'operationId');
    const accepted = await lane.complete(folder, declared, 'complete-a/1?&');
    const path = `/api/folder/${folder.id}/upload-status?view=completion&operationId=complete-a%2F1%3F%26`;
    expect(accepted.status).toBe(202);
    expect(Object.fromEntries(['location', 'retry-after', 'cache-control'].map((name) => [name, accepted.headers.get(name)]))).toEqual({ 'location': path, 'retry-after': '1', 'cache-control': 'no-store' });
    expect(accepted.json).toEqual({ operationId: 'complete-a/1?&', state: expect.stringMatching(/^(accepted|running|ready)$/), statusUrl: `${exchange.baseUrl}${path}` });
    const { fileId, uploadId } = declared;
    expect(await lane.untilDone(folder, 'complete-a/1?&')).toEqual({ operationId: 'complete-a/1?&', fileId, uploadId, state: 'ready', attempts: 1, done: true });
    expect((await must(`/api/dl/${fileId}?share_id=${folder.shareId}`)).text).toBe('content of a');
    expect((await parts.status(uploadId, token())).json).toMatchObject({ state: 'completed' });
  });

  test('puts parts together that came in any order, and knows an empty file', async () => {
    const bytes = randomBytes(20 * 1_024 ** 2);
    const large = await lane.mustDeclare(folder, 'large.bin', bytes.length);
    for (const number of [2, 1, 2]) await lane.part(folder, large.uploadId, number, bytes.subarray((number - 1) * large.partSize, number * large.partSize));
    const empty = await lane.mustDeclare(folder, 'empty.txt', 0);
    expect(empty.partCount).toBe(0);
    for (const declared of [large, empty]) {
      await lane.complete(folder, declared, declared.fileId);
      expect(await lane.untilDone(folder, declared.fileId)).toMatchObject({ state: 'ready' });
    }
    expect((await must(`/api/dl/${large.fileId}?share_id=${folder.shareId}`)).bytes.equals(bytes)).toBe(true);
    expect((await must(`/api/dl/${empty.fileId}?share_id=${folder.shareId}`)).bytes.length).toBe(0);
  });

  test('with the same operation id is one command, and with another for the same file is done at once', async () => {
    const declared = await lane.send(folder, 'once.txt', 'once');
    const racers = await Promise.all(Array.from({ length: 20 }, (_, index) => lane.complete(folder, declared, `once-${index % 2}`)));
    expect(racers.map(({ status }) => status)).toEqual(Array(20).fill(202));
    await lane.untilDone(folder, 'once-0');
    await lane.untilDone(folder, 'once-1');
    const again = await lane.complete(folder, declared, 'once-0');
    expect([again.status, again.json.state]).toEqual([202, 'ready']);
    await lane.complete(folder, declared, 'once-2');
    expect(await lane.untilDone(folder, 'once-2')).toMatchObject({ state: 'ready', fileId: declared.fileId });
    const ready = await events(session, { eventType: 'folder.file_ready', targetId: folder.id });
    expect(ready.filter(({ data }) => (data as { fileId: string }).fileId === declared.fileId)).toMatchObject([{ targetType: 'folder', shareId: folder.shareId, data: { uploadId: declared.uploadId, size: 4 } }]);
  });

  test('with an operation id of another command is refused', async () => {
    const [one, two] = [await lane.send(folder, 'one.txt', '1'), await lane.send(folder, 'two.txt', '2')];
    await lane.complete(folder, one, 'of-one');
    expectRefusal(await lane.complete(folder, two, 'of-one'), 422, 'idempotency_key_reused');
    expectRefusal(await lane.complete(folder, { fileId: one.fileId, uploadId: two.uploadId }, 'of-both'), 404, 'multipart_upload_not_found');
  });

  test('fails for good when parts are missing; a new command works once they are there', async () => {
    const declared = await lane.mustDeclare(folder, 'missing.txt', 7);
    await lane.complete(folder, declared, 'too-soon');
    expect(await lane.untilDone(folder, 'too-soon')).toMatchObject({ state: 'failed', done: true, error: { code: 'invalid_request', detail: expect.stringContaining('part') } });
    await lane.part(folder, declared.uploadId, 1, Buffer.from('missing'));
    expect((await lane.complete(folder, declared, 'too-soon')).json).toMatchObject({ state: 'failed' });
    await lane.complete(folder, declared, 'in-time');
    expect(await lane.untilDone(folder, 'in-time')).toMatchObject({ state: 'ready' });
  });

  test('takes exactly fileId, uploadId and operationId', async () => {
    const { fileId, uploadId } = await lane.send(folder, 'exactly.txt', 'x');
    const all = { fileId, uploadId, operationId: 'exactly' };
    for (const field of Object.keys(all)) {
      const { [field as keyof typeof all]: _left, ...rest } = all;
      expectRefusal(await call(`/api/folder/${folder.id}/upload-complete`, { json: rest, bearer: session }), 400, 'invalid_request', field);
    }
    expectRefusal(await call(`/api/folder/${folder.id}/upload-complete`, { json: { ...all, parts: [] }, bearer: session }), 400, 'invalid_request', 'parts');
  });

  test('is the only way to complete a file: the multipart lane refuses, and an aborted upload stays aborted', async () => {
    const declared = await lane.send(folder, 'only.txt', 'only');
    expectRefusal(await parts.complete(declared.uploadId, {}, { bearer: session }), 409, 'upload_state_conflict');
    await parts.abort(declared.uploadId, token());
    expectRefusal(await lane.complete(folder, declared, 'aborted'), 409, 'upload_state_conflict');
    expectRefusal(await lane.part(folder, declared.uploadId, 1, Buffer.from('only')), 409, 'upload_state_conflict');
  });

  test('of another folder\'s file answers multipart_upload_not_found', async () => {
    const another = await lane.create({}, session);
    const declared = await lane.send(another, 'a.txt', 'a');
    expectRefusal(await lane.complete(folder, declared, 'of-another'), 404, 'multipart_upload_not_found');
    expectRefusal(await lane.complete({ ...folder, folderId: folder.id.replace(/.$/, 'x') }, declared, 'nowhere', { bearer: session }), 404, 'folder_not_found');
  });
});

describe('POST /api/folder/{folderId}/upload-direct-complete', () => {
  test('is the same command: parts that came through the exchange are completed by it, too', async () => {
    const { fileId, uploadId } = await lane.send(folder, 'direct.txt', 'direct');
    const operationId = randomUUID();
    const accepted = await direct({ fileId, uploadId, operationId });
    expect([accepted.status, accepted.headers.get('location')]).toEqual([202, `/api/folder/${folder.id}/upload-status?view=completion&operationId=${operationId}`]);
    expect(await lane.untilDone(folder, operationId)).toMatchObject({ state: 'ready' });
    expect((await lane.complete(folder, { fileId, uploadId }, operationId)).json).toMatchObject({ state: 'ready' });
  });
});

describe('GET /api/folder/{folderId}/upload-status', () => {
  test('of an unknown command answers multipart_upload_not_found, and needs its view', async () => {
    expectRefusal(await poll('?view=completion&operationId=never'), 404, 'multipart_upload_not_found');
    expectRefusal(await poll('?operationId=never'), 400, 'invalid_request', 'view');
    expectRefusal(await poll('?view=other&operationId=never'), 400, 'invalid_request', 'view');
  });

  test('says when to ask again until it is done, and is never cached', async () => {
    await lane.complete(folder, await lane.send(folder, 'polled.txt', 'x'), 'polled');
    await lane.untilDone(folder, 'polled');
    const { headers } = await poll('?view=completion&operationId=polled');
    expect([headers.get('retry-after'), headers.get('cache-control')]).toEqual([null, 'no-store']);
  });
});
