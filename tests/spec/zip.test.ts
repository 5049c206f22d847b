/** GET /api/folder/{folderId}/zip: the ready files of a folder as one archive that opens everywhere (interface chapter: Folders). */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readers, unpack } from '../support/archive-readers.ts';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { folderLane } from '../support/folder-lane.ts';
import { readZip } from '../support/read-zip.ts';
import { expectRefusal } from '../support/refusals.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';

const exchange = sharedExchange();
const { call, must, events } = exchange;
const lane = folderLane(exchange);

let session: string;
let agent: Agent;
let scratch: string;
beforeAll(async () => {
  session = await exchange.signIn();
  agent = await exchange.makeAgent(session);
  scratch = await mkdtemp(join(tmpdir(), 'aex-zip-'));
});
afterAll(async () => rm(scratch, { recursive: true, force: true }));

const contents = (archive: Buffer) => Object.fromEntries(readZip(archive).map(({ name, bytes }) => [name, bytes.toString('utf8')]));

describe('the archive of a folder', () => {
  test('holds every ready file under its path, and says how long it is', async () => {
    const files = { 'a.txt': 'a', 'deep/er/b.txt': 'bb', 'empty': '', 'ü/日本.txt': 'ccc' };
    const folder = await lane.fill(files, { name: 'Quarter 3' });
    await lane.send(folder, 'unready.txt', 'not yet');
    const answer = await must(folder.zipUrl);
    expect(contents(answer.bytes)).toEqual(files);
    expectSafeHeaders(answer.headers);
    expect(Object.fromEntries(['content-type', 'content-disposition', 'content-length', 'accept-ranges', 'cache-control', 'content-security-policy', 'etag'].map((name) => [name, answer.headers.get(name)]))).toEqual({
      'content-type': 'application/zip', 'content-disposition': `attachment; filename="Quarter 3.zip"; filename*=UTF-8''Quarter%203.zip`, 'content-length': String(answer.bytes.length),
      'accept-ranges': 'none', 'cache-control': 'no-store', 'content-security-policy': "sandbox; default-src 'none'", 'etag': null,
    });
  });

  test('has the bytes of files of many parts, and is the same each time', async () => {
    const bytes = randomBytes(17 * 1_024 ** 2);
    const folder = await lane.fill({ 'large.bin': bytes, 'small.txt': 'small' });
    const [first, again] = [await must(folder.zipUrl), await must(folder.zipUrl)];
    expect(readZip(first.bytes)[0]!.bytes.equals(bytes)).toBe(true);
    expect(again.bytes.equals(first.bytes)).toBe(true);
    expect(Math.abs(readZip(first.bytes)[0]!.modified.getTime() - Date.now())).toBeLessThan(600_000);
  });

  test('is the same at /api/dl/{id}, where a range is ignored, and HEAD shows its headers', async () => {
    const folder = await lane.fill({ a: 'a', b: 'b' });
    const { bytes, headers } = await must(folder.zipUrl);
    for (const more of [{}, { range: 'bytes=0-3' }, { 'if-none-match': '*' }] as Record<string, string>[]) {
      const answer = await call(folder.downloadUrl, { headers: more });
      expect([answer.status, answer.bytes.equals(bytes)]).toEqual([200, true]);
    }
    const head = await call(`/api/dl/${folder.id}`, { method: 'HEAD' });
    for (const name of ['content-type', 'content-length', 'content-disposition', 'accept-ranges']) expect(head.headers.get(name)).toBe(headers.get(name));
  });

  test('is recorded once it was sent', async () => {
    const folder = await lane.fill({ a: 'a', b: 'b' }, {}, session);
    await must(folder.zipUrl);
    const [zipped] = await events(session, { eventType: 'folder.zipped', targetId: folder.id });
    const [fetched] = await events(session, { eventType: 'transfer.fetched', targetId: folder.id });
    expect(zipped).toMatchObject({ targetType: 'folder', shareId: folder.shareId, outcome: 'allowed', data: { entries: 2 } });
    expect(fetched).toMatchObject({ targetType: 'folder', data: { fetchId: (zipped!['data'] as { fetchId: string }).fetchId } });
  });

  test('has no file that was taken out of the folder', async () => {
    const folder = await lane.fill({ a: 'a' });
    const { fileId } = await lane.add(folder, 'out', 'out');
    await must(`/api/dl/${fileId}`, { method: 'DELETE', headers: { 'x-delete-token': folder.deleteToken } });
    expect(contents((await must(folder.zipUrl)).bytes)).toEqual({ a: 'a' });
  });
});

describe('each archive', () => {
  test('spends one use, however many files it has, with share_id or without', async () => {
    const folder = await lane.fill({ a: 'a', b: 'b' }, { maxUses: 3 });
    const remaining = async (path: string) => (await must(path)).headers.get('x-remaining-uses');
    expect([await remaining(folder.zipUrl), await remaining(`/api/folder/${folder.id}/zip`), await remaining(folder.downloadUrl)]).toEqual(['2', '1', '0']);
    for (const path of [folder.zipUrl, `/api/folder/${folder.id}/zip`, folder.downloadUrl]) expectRefusal(await call(path), 410, 'share_use_limit_exceeded');
  });

  test('of many at once on one use is one', async () => {
    const folder = await lane.fill({ a: 'a' }, { maxUses: 1 });
    const racers = await Promise.all(Array.from({ length: 20 }, (_, index) => call(index % 2 ? folder.zipUrl : folder.downloadUrl)));
    expect(racers.filter(({ status }) => status === 200).length).toBe(1);
    expect(racers.filter(({ status }) => status === 410).length).toBe(19);
  });

  test('where nothing is ready is refused and spends nothing', async () => {
    const folder = await lane.create({ maxUses: 1 }, session);
    await lane.send(folder, 'a', 'a');
    for (const path of [folder.zipUrl, folder.downloadUrl]) expectRefusal(await call(path), 404, 'folder_not_found');
    expect((await call(folder.downloadUrl, { method: 'HEAD' })).status).toBe(404);
    await lane.add(folder, 'b', 'b');
    expect(contents((await must(folder.zipUrl)).bytes)).toEqual({ b: 'b' });
  });

  test('of what is no folder is refused', async () => {
    const { id, shareId } = await exchange.upload('a file');
    for (const target of [id, id.replace(/.$/, 'x'), 'nonsense']) expectRefusal(await call(`/api/folder/${target}/zip?share_id=${shareId}`), 404, 'folder_not_found');
  });

  test('of an agent folder takes a grant, once', async () => {
    const folder = await lane.fill({ a: 'a' }, { authMode: 'agent', allowedAgentIds: [agent.agentId] }, session);
    const path = `/api/folder/${folder.id}/zip`;
    const headers = { 'x-access-grant': await exchange.grant(folder.shareId, agent.key) };
    for (const refused of [path, folder.zipUrl, folder.downloadUrl]) expectRefusal(await call(refused), 401, 'grant_required');
    expectRefusal(await call(path, { headers: { 'x-access-grant': 'agrt_made.up' } }), 403, 'invalid_grant');
    expect(contents((await call(path, { headers })).bytes)).toEqual({ a: 'a' });
    for (const again of [path, `/api/dl/${folder.id}`]) expectRefusal(await call(again, { headers }), 409, 'grant_already_used');
  });

  test('takes the passcode of its share, and refuses a prefetch and another\'s share', async () => {
    const [folder, another] = [await lane.fill({ a: 'a' }, { passcode: 'open sesame' }), await lane.fill({ a: 'a' })];
    expectRefusal(await call(folder.zipUrl), 401, 'passcode_required');
    expect((await call(folder.zipUrl, { headers: { 'x-share-passcode': 'open sesame' } })).status).toBe(200);
    expectRefusal(await call(another.zipUrl, { headers: { 'sec-purpose': 'prefetch' } }), 403, 'forbidden');
    expectRefusal(await call(`/api/folder/${folder.id}/zip?share_id=${another.shareId}`), 404, 'share_not_found_or_expired');
    expectRefusal(await call(`${another.zipUrl}&format=tar`), 400, 'invalid_request', 'format');
  });
});

describe('hostile names', () => {
  const names: Record<string, string> = {
    'CON': '_CON', 'aux.txt': '_aux.txt', 'a/nul.tar.gz': 'a/_nul.tar.gz', 'a b:c': 'a b_c', 'dots. ': 'dots__', 'gnp\u202etxt.exe': 'gnp_txt.exe', '=1+1': '=1+1', '-rf': '-rf', '"quoted"': '_quoted_',
    '~root': '~root', '%2e%2e/x': '%2e%2e/x', '..hidden/.x': '..hidden/.x', 'é': 'é', '😀/😀': '😀/😀', 'a*?': 'a__', '$(id)`id`': '$(id)`id`', [`${'x'.repeat(255)}/${'y'.repeat(255)}`]: `${'x'.repeat(255)}/${'y'.repeat(255)}`,
  };
  let archive: string;
  beforeAll(async () => {
    const folder = await lane.fill(Object.fromEntries(Object.keys(names).map((path) => [path, path])));
    archive = join(scratch, 'hostile.zip');
    await writeFile(archive, (await must(folder.zipUrl)).bytes);
  });

  test.for(readers)('are safe ones to $name', async ({ name, isInstalled, list }, { skip }) => {
    skip(!isInstalled, `${name} is not installed`);
    expect((await list(archive)).sort()).toEqual(Object.values(names).sort());
  });

  test('unpack below the folder, each file with its content', async ({ skip }) => {
    skip(!readers[0]!.isInstalled, 'unzip is not installed');
    const { files, beside } = await unpack(archive);
    expect(files).toEqual(Object.fromEntries(Object.entries(names).map(([path, name]) => [name, path])));
    expect(beside).toEqual([]);
  });
});
