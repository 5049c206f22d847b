/** Folders: made empty, filled file by file by their sender, listed for whoever may (interface chapter: Folders). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { folderLane, type Folder } from '../support/folder-lane.ts';
import { multipartLane } from '../support/multipart-lane.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must, events, baseUrl } = exchange;
const lane = folderLane(exchange);
const parts = multipartLane(exchange);

let session: string;
let agent: Agent;
let other: Agent;
beforeAll(async () => {
  session = await exchange.signIn();
  agent = await exchange.makeAgent(session);
  other = await exchange.makeAgent(session);
});

describe('POST /api/folder', () => {
  test('answers the upload response with folderId and zipUrl', async () => {
    const answer = await call('/api/folder', { json: { name: 'results', ttl: 600, maxUses: 3 }, bearer: session });
    expect(answer.status).toBe(201);
    const { id, shareId, expiresAt } = answer.json;
    expect(answer.json).toEqual({
      id: expect.stringMatching(/^trf_/), folderId: id, shareId: expect.stringMatching(/^shr_/), expiresAt, deleteToken: expect.stringMatching(/^dlt_/),
      shareUrl: `${baseUrl}/s/${shareId}`, downloadUrl: `${baseUrl}/api/dl/${id}?share_id=${shareId}`, zipUrl: `${baseUrl}/api/folder/${id}/zip?share_id=${shareId}`,
    });
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now() + 500_000);
  });

  test('makes an ordinary share of type folder', async () => {
    const { id, shareId } = await lane.create({ maxUses: 2, policyMetadata: { step: 'one' } }, agent.key);
    expect((await must(`/api/share/${shareId}`)).json).toMatchObject({
      id: shareId, type: 'folder', targetId: id, folderId: id, createdByAgentId: agent.agentId, policy: { mode: 'open', maxUses: 2, metadata: { step: 'one' } },
    });
    expect((await must('/api/shares', { bearer: session })).json.shares).toContainEqual(expect.objectContaining({ id: shareId, type: 'folder', state: 'active' }));
  });

  test('sent again with its key answers the same folder; another request is refused', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const ask = (json: object) => call('/api/folder', { json, headers, bearer: session });
    const [first, again] = [await ask({ name: 'once', passcode: 'open sesame' }), await ask({ name: 'once', passcode: 'open sesame' })];
    expect(first.status).toBe(201);
    expect(again.json).toEqual(first.json);
    expectRefusal(await ask({ name: 'once', passcode: 'another' }), 422, 'idempotency_key_reused');
    expectRefusal(await ask({ name: 'twice' }), 422, 'idempotency_key_reused');
    expectRefusal(await call('/api/upload/multipart/init', { json: { filename: 'once', size: 1 }, headers, bearer: session }), 422, 'idempotency_key_reused');
  });

  test.each([[{}], [{ name: '' }], [{ name: 'a/b' }], [{ name: 'a', size: 3 }], [{ name: 'a', ttl: 5 }], [{ name: 'a', authMode: 'agent' }]])('refuses %j', async (json) => {
    expectRefusal(await call('/api/folder', { json }), 400, 'invalid_request');
  });

  test('is told as folder.created', async () => {
    const { id, shareId } = await lane.create({}, agent.key);
    const [event] = await events(session, { eventType: 'folder.created', targetId: id });
    expect(event).toMatchObject({ targetType: 'folder', shareId, agentId: agent.agentId, actor: { type: 'agent', id: agent.agentId }, outcome: 'allowed' });
  });
});

describe('POST /api/folder/{folderId}/files', () => {
  let folder: Folder;
  beforeAll(async () => { folder = await lane.create({}, session); });

  test('declares a file and answers how its bytes come', async () => {
    const answer = await lane.declare(folder, { path: 'a/b/report.txt', size: 40_000_000, mimeType: 'text/plain' });
    expect(answer.status).toBe(201);
    const { partSize, partCount } = answer.json;
    expect(answer.json).toMatchObject({ fileId: expect.stringMatching(/^fil_/), uploadId: expect.stringMatching(/^mpu_/), path: 'a/b/report.txt', maxParallelParts: expect.any(Number) });
    expect(partCount).toBe(Math.ceil(40_000_000 / partSize));
    expect((await parts.status(answer.json.uploadId, { bearer: session })).json).toMatchObject({ transferId: answer.json.fileId, state: 'initialized', size: 40_000_000, partSize });
  });

  test.each([
    ['an absolute path', '/etc/passwd'], ['a step upwards', '../x'], ['a step upwards in between', 'a/../../x'], ['here', './x'], ['a backslash', 'a\\b'], ['a drive', 'C:/x'], ['a drive alone', 'c:x'],
    ['an empty name', 'a//b'], ['a folder', 'a/'], ['nothing', ''], ['a line break', 'a\r\nb'], ['NUL', 'a\0b'], ['half a character', '\ud800'], ['1,025 bytes', `${'x/'.repeat(512)}x`], ['a name of 256 bytes', `a/${'x'.repeat(256)}`],
  ])('refuses %s', async (_title, path) => {
    expectRefusal(await lane.declare(folder, { path, size: 1 }), 400, 'invalid_request', 'path');
  });

  test.each([
    ['1,024 bytes', `${'x/'.repeat(511)}xx`], ['characters of four bytes', `${'😀'.repeat(63)}/${'😀'.repeat(63)}`], ['a name with a leading =', '=1+1'], ['quotes', `"a'b`], ['a device of Windows', 'CON.txt'], ['a turn of direction', 'gnp\u202e.txt'],
  ])('takes %s', async (_title, path) => {
    expect((await lane.declare(folder, { path, size: 1 })).json).toMatchObject({ path });
  });

  test('takes a path in NFC, whatever form it came in', async () => {
    expect((await lane.declare(folder, { path: 'u\u0308ber/a\u0308.txt', size: 1 })).json).toMatchObject({ path: 'über/ä.txt' });
  });

  test.each([
    ['the same', 'taken/a.txt'], ['the same in another case', 'TAKEN/A.TXT'], ['a file below a file', 'taken/a.txt/b'], ['a file in place of a folder', 'Taken'], ['what unpacks to the same', 'taken/b_.txt'],
  ])('a path is one file: %s answers upload_state_conflict', async (_title, path) => {
    for (const taken of ['taken/a.txt', 'taken/b:.txt']) await lane.declare(folder, { path: taken, size: 1 });
    expectRefusal(await lane.declare(folder, { path, size: 1 }), 409, 'upload_state_conflict', 'path');
  });

  test('of many at once for one path one is let in, and for a file and a folder of one name one of both', async () => {
    const racers = await Promise.all(Array.from({ length: 20 }, (_, index) => lane.declare(folder, { path: index % 2 ? 'raced' : `raced/${index}`, size: 1 })));
    const paths = racers.flatMap(({ status, json }) => (status === 201 ? [json.path as string] : []));
    expect(paths.includes('raced') ? paths : paths.map((path) => path.startsWith('raced/'))).toEqual(paths.includes('raced') ? ['raced'] : Array(10).fill(true));
  });

  test('with an operation id answers the same file again, to every sender of the folder', async () => {
    const operationId = randomUUID();
    const ask = (size: number, sender?: object) => lane.declare(folder, { path: 'once.txt', size, operationId }, sender);
    const racers = await Promise.all([ask(5), ask(5), ask(5, { bearer: session })]);
    expect(racers.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(new Set(racers.map(({ json }) => JSON.stringify(json))).size).toBe(1);
    expectRefusal(await ask(6), 422, 'idempotency_key_reused');
  });

  test('refuses a file larger than a transfer may be', async () => {
    expectRefusal(await lane.declare(folder, { path: 'huge', size: 11 * 1_024 ** 3 }), 413, 'payload_too_large');
    expectRefusal(await lane.declare(folder, { path: 'negative', size: -1 }), 400, 'invalid_request', 'size');
  });

  test('gives a path free again with the end of its upload', async () => {
    const declared = await lane.mustDeclare(folder, 'again.txt', 1);
    const aborted = await parts.abort(declared.uploadId, { headers: { 'x-delete-token': folder.deleteToken } });
    expect(aborted.json).toEqual({ uploadId: declared.uploadId, state: 'aborted' });
    expect((await lane.mustDeclare(folder, 'again.txt', 1)).fileId).not.toBe(declared.fileId);
  });

  test('answers folder_not_found for what is no folder, and for one that was deleted', async () => {
    const gone = await lane.create({}, session);
    await must(`/api/dl/${gone.id}`, { method: 'DELETE', bearer: session });
    const file = await exchange.upload('x', {}, session);
    for (const id of [gone.id, file.id]) expectRefusal(await call(`/api/folder/${id}/files`, { bearer: session, json: { path: 'a', size: 1 } }), 404, 'folder_not_found');
  });
});

describe('who fills a folder', () => {
  test('of an agent: the agent, its owner, and the holder of its delete token', async () => {
    const folder = await lane.create({}, agent.key);
    for (const [name, sender] of [['agent', { bearer: agent.key }], ['owner', { bearer: session }], ['token', {}]] as const) await lane.add(folder, `${name}.txt`, name, sender);
    expect((await lane.list(folder)).json.files.map(({ path }: { path: string }) => path)).toEqual(['agent.txt', 'owner.txt', 'token.txt']);
    expectRefusal(await lane.declare(folder, { path: 'x', size: 1 }, { bearer: other.key }), 401, 'delete_token_required');
  });

  test('of nobody in particular: the holder of its delete token alone', async () => {
    const [folder, another] = [await lane.create(), await lane.create()];
    const declared = await lane.send(folder, 'a.txt', 'a');
    for (const bearer of [session, agent.key]) expectRefusal(await lane.declare(folder, { path: 'b', size: 1 }, { bearer }), 401, 'delete_token_required');
    expectRefusal(await lane.declare(folder, { path: 'b', size: 1 }, { token: another.deleteToken }), 403, 'invalid_delete_token');
    expectRefusal(await lane.part(folder, declared.uploadId, 1, Buffer.from('b'), { token: another.deleteToken }), 403, 'invalid_delete_token');
    expectRefusal(await parts.status(declared.uploadId), 401, 'delete_token_required');
    expectRefusal(await lane.complete(folder, declared, 'x', { token: another.deleteToken }), 403, 'invalid_delete_token');
  });
});

describe('GET /api/folder/{folderId}', () => {
  test('shows its sender every file and how far it is, and a receiver the ready ones', async () => {
    const folder = await lane.create({ name: 'mixed' }, session);
    expect((await lane.list(folder)).json).toEqual({ folderId: folder.id, name: 'mixed', state: 'empty', count: 0, files: [], nextCursor: null });
    const ready = await lane.add(folder, 'ready.txt', 'ready');
    const sent = await lane.send(folder, 'sent.txt', 'sent');
    const file = { fileId: ready.fileId, path: 'ready.txt', size: 5, mimeType: 'text/plain', state: 'ready', sha256: expect.stringMatching(/^[0-9a-f]{64}$/), downloadUrl: `${baseUrl}/api/dl/${ready.fileId}?share_id=${folder.shareId}` };
    const seen = (await lane.list(folder, '', { bearer: session })).json;
    expect(seen).toMatchObject({ state: 'uploading', count: 2, files: [file, { fileId: sent.fileId, path: 'sent.txt', state: 'uploading' }] });
    const received = await call(`/api/folder/${folder.id}?share_id=${folder.shareId}`);
    expect(received.headers.get('cache-control')).toBe('no-store');
    expect(received.json).toEqual({ folderId: folder.id, name: 'mixed', state: 'uploading', count: 1, files: [file], nextCursor: null });
  });

  test('goes on page by page', async () => {
    const folder = await lane.create();
    for (let index = 0; index < 5; index += 1) await lane.mustDeclare(folder, `${index}.txt`, 1);
    const paths: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { json } = await lane.list(folder, `?limit=2${cursor && `&cursor=${cursor}`}`);
      expect(json.count).toBe(json.files.length);
      paths.push(...json.files.map(({ path }: { path: string }) => path));
      cursor = json.nextCursor as string | null;
    }
    expect(paths).toEqual(['0.txt', '1.txt', '2.txt', '3.txt', '4.txt']);
    for (const cursor of ['x', 'MA', 'LTE', '']) expectRefusal(await lane.list(folder, `?cursor=${cursor}`), 400, 'invalid_cursor');
    for (const limit of [0, 1_001, 'a']) expectRefusal(await lane.list(folder, `?limit=${limit}`), 400, 'invalid_request', 'limit');
  });

  test('of an agent share is for its agents, by key or access token, and shows no download address', async () => {
    const folder = await lane.fill({ 'a.txt': 'a' }, { authMode: 'agent', allowedAgentIds: [agent.agentId] }, session);
    const path = `/api/folder/${folder.id}?share_id=${folder.shareId}`;
    const token = (await must('/api/agent/auth', { method: 'POST', bearer: agent.key })).json.accessToken as string;
    for (const bearer of [agent.key, token]) {
      const [file] = (await must(path, { bearer })).json.files;
      expect(file).toMatchObject({ path: 'a.txt', state: 'ready' });
      expect(file).not.toHaveProperty('downloadUrl');
    }
    expectRefusal(await call(path), 401, 'agent_auth_required');
    expectRefusal(await call(path, { bearer: other.key }), 403, 'agent_not_allowed_for_share');
  });

  test('refuses the share of another folder, and whoever names none and is not its sender', async () => {
    const [folder, another] = [await lane.create(), await lane.create()];
    expectRefusal(await call(`/api/folder/${folder.id}?share_id=${another.shareId}`), 404, 'share_not_found_or_expired');
    expectRefusal(await call(`/api/folder/${folder.id}`), 401, 'delete_token_required');
    expectRefusal(await call(`/api/folder/${folder.id}?resolved=true`), 400, 'invalid_request', 'resolved');
  });
});

test('the page of a folder offers its archive and names no file', async () => {
  const folder = await lane.fill({ 'only-in-the-folder.txt': 'x' }, { name: 'Quarter 3' });
  const { text } = await must(`/s/${folder.shareId}`);
  expect(text).toContain(`/api/dl/${folder.id}?share_id=${folder.shareId}`);
  expect(text).toContain('./Quarter 3.zip');
  expect(text).toContain('Shared folder');
  expect(text).not.toContain('only-in-the-folder');
});
