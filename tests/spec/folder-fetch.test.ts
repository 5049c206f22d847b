/** The files of a folder one by one: fetched by the folder's share or grant, taken out by its sender, gone with the folder (interface chapters: Transfer bytes, Folders). */
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { folderLane, type Folder } from '../support/folder-lane.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must, events } = exchange;
const lane = folderLane(exchange);

let session: string;
let agent: Agent;
beforeAll(async () => {
  session = await exchange.signIn();
  agent = await exchange.makeAgent(session);
});

const addressOf = (folder: Folder, fileId: string) => `/api/dl/${fileId}?share_id=${folder.shareId}`;

describe('one file of a folder', () => {
  test('comes with the headers of a transfer, whole and in ranges', async () => {
    const folder = await lane.create();
    const { fileId } = await lane.add(folder, 'deep/report.html', '<p>0123456789</p>');
    const address = addressOf(folder, fileId);
    const whole = await must(address);
    expect(whole.text).toBe('<p>0123456789</p>');
    expect(whole.headers.get('content-disposition')).toContain('filename="report.html"');
    expect(whole.headers.get('content-security-policy')).toContain('sandbox');
    expect(whole.headers.get('repr-digest')).toMatch(/^sha-256=:/);
    const part = await call(address, { headers: { range: 'bytes=3-5' } });
    expect([part.status, part.text, part.headers.get('content-range')]).toEqual([206, '012', 'bytes 3-5/17']);
    expect((await call(address, { headers: { 'if-none-match': whole.headers.get('etag')! } })).status).toBe(304);
    expectRefusal(await call(address, { headers: { range: 'bytes=17-' } }), 416, 'range_not_satisfiable');
    const head = await call(`/api/dl/${fileId}`, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), head.headers.get('etag')]).toEqual([200, '17', whole.headers.get('etag')]);
  });

  test('spends one use of the folder\'s share with each fetch, whichever file it is', async () => {
    const folder = await lane.create({ maxUses: 3 }, session);
    const files = [await lane.add(folder, 'a', 'a'), await lane.add(folder, 'b', 'b')];
    const remaining = async (index: number) => (await must(addressOf(folder, files[index]!.fileId))).headers.get('x-remaining-uses');
    expect([await remaining(0), await remaining(1), await remaining(0)]).toEqual(['2', '1', '0']);
    expectRefusal(await call(addressOf(folder, files[1]!.fileId)), 410, 'share_use_limit_exceeded');
    const fetched = await events(session, { eventType: 'transfer.fetched', targetId: folder.id }, 3);
    expect(fetched.map(({ targetType, data }) => [targetType, (data as { fileId: string }).fileId])).toEqual([0, 1, 0].map((index) => ['folder', files[index]!.fileId]));
  });

  test('of many fetches at once the share\'s last uses go to as many as it has', async () => {
    const folder = await lane.create({ maxUses: 2 });
    const { fileId } = await lane.add(folder, 'a', 'a');
    const racers = await Promise.all(Array.from({ length: 12 }, () => call(addressOf(folder, fileId))));
    expect(racers.map(({ status }) => status).sort()).toEqual([200, 200, ...Array<number>(10).fill(410)]);
  });

  test('of an agent folder takes the folder\'s grant, once', async () => {
    const folder = await lane.fill({}, { authMode: 'agent', allowedAgentIds: [agent.agentId] }, session);
    const { fileId } = await lane.add(folder, 'a', 'for the agent');
    const granted = (await must('/api/agent/grants', { bearer: agent.key, json: { shareId: folder.shareId } })).json;
    expect(granted).toMatchObject({ targetType: 'folder', targetId: folder.id });
    const headers = { 'x-access-grant': granted.accessToken };
    expectRefusal(await call(addressOf(folder, fileId)), 401, 'grant_required');
    expect((await call(`/api/dl/${fileId}`, { headers })).text).toBe('for the agent');
    expectRefusal(await call(`/api/dl/${fileId}`, { headers }), 409, 'grant_already_used');
  });

  test('is refused without the share, with another\'s, and with the passcode missing', async () => {
    const [folder, another] = [await lane.create({ passcode: 'open sesame' }), await lane.create()];
    const { fileId } = await lane.add(folder, 'a', 'locked');
    expectRefusal(await call(`/api/dl/${fileId}`), 400, 'share_id_required');
    expectRefusal(await call(addressOf(another, fileId)), 404, 'share_not_found_or_expired');
    expectRefusal(await call(addressOf(folder, fileId)), 401, 'passcode_required');
    expect((await call(addressOf(folder, fileId), { headers: { 'x-share-passcode': 'open sesame' } })).text).toBe('locked');
  });

  test('is not there before it is ready', async () => {
    const folder = await lane.create({ maxUses: 1 });
    const { fileId } = await lane.send(folder, 'a', 'a');
    for (const method of ['GET', 'HEAD']) expect((await call(addressOf(folder, fileId), { method })).status).toBe(404);
    expectRefusal(await call(addressOf(folder, fileId.replace('fil_', 'trf_'))), 404, 'share_not_found_or_expired');
  });
});

describe('DELETE /api/dl/{id}', () => {
  test('of a file takes it out of the folder and leaves the others; its path is free again', async () => {
    const folder = await lane.create({}, session);
    const [out, stays] = [await lane.add(folder, 'out', 'out'), await lane.add(folder, 'stays', 'stays')];
    const remove = (id: string, token: string) => call(`/api/dl/${id}`, { method: 'DELETE', headers: { 'x-delete-token': token } });
    expectRefusal(await remove(out.fileId, (await lane.create()).deleteToken), 403, 'invalid_delete_token');
    expectRefusal(await call(`/api/dl/${out.fileId}`, { method: 'DELETE' }), 401, 'delete_token_required');
    for (let times = 0; times < 2; times += 1) expect((await remove(out.fileId, folder.deleteToken)).json).toEqual({ id: out.fileId, deleted: true });
    expectRefusal(await call(addressOf(folder, out.fileId)), 404, 'transfer_not_found');
    expect((await must(addressOf(folder, stays.fileId))).text).toBe('stays');
    expect((await lane.list(folder)).json.files).toMatchObject([{ path: 'stays' }]);
    expect((await lane.add(folder, 'out', 'again')).fileId).not.toBe(out.fileId);
    expect(await events(session, { eventType: 'transfer.deleted', targetId: out.fileId })).toMatchObject([{ targetType: 'file', shareId: folder.shareId, data: { folderId: folder.id } }]);
  });

  test('of a folder ends its share, its files and what is still sent', async () => {
    const folder = await lane.create({}, session);
    const ready = await lane.add(folder, 'ready', 'ready');
    const sent = await lane.send(folder, 'sent', 'sent');
    await must(`/api/dl/${folder.id}`, { method: 'DELETE', headers: { 'x-delete-token': folder.deleteToken } });
    expectRefusal(await call(addressOf(folder, ready.fileId)), 404, 'share_not_found_or_expired');
    expectRefusal(await call(`/api/dl/${ready.fileId}`), 404, 'transfer_not_found');
    expectRefusal(await call(folder.zipUrl), 404, 'folder_not_found');
    expectRefusal(await call(`/api/share/${folder.shareId}`), 404, 'share_not_found_or_expired');
    expectRefusal(await lane.complete(folder, sent, 'too-late'), 404, 'folder_not_found');
    expectRefusal(await lane.list(folder), 404, 'folder_not_found');
    expect(await events(session, { eventType: 'transfer.deleted', targetId: folder.id })).toMatchObject([{ targetType: 'folder' }]);
  });
});

test('a folder is kept longer with its share, and its files with it', async () => {
  const folder = await lane.fill({ a: 'a' }, { ttl: 60 }, session);
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  expect((await must(`/api/share/${folder.shareId}`, { method: 'PATCH', bearer: session, json: { expiresAt } })).json.policy.expiresAt).toBe(expiresAt);
});
