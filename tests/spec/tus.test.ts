/** Resumable uploads by the TUS protocol on a deployment that switched them on (interface chapter: TUS adapter). */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { byMethod } from '../support/any-method.ts';
import type { Agent } from '../support/exchange.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { openRaw } from '../support/raw-http.ts';
import { expectRefusal } from '../support/refusals.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';
import { bytesType, metadataOf, toldShare, tusLane } from '../support/tus-lane.ts';
import { askBeforeSending, leaveMidBody } from '../support/unruly-client.ts';

const MiB = 1_024 ** 2;
const mostBytes = 8 * MiB;
let own: OwnStack;
let lane: ReturnType<typeof tusLane>;
let session: string;
let agent: Agent;

beforeAll(async () => {
  own = await startOwnStack({ gateway: { LEGACY_SURFACES: 'tus' }, policy: { TRANSFER_MAX_BYTES: String(mostBytes) } });
  lane = tusLane(own.exchange);
  session = await own.exchange.signIn();
  agent = await own.exchange.makeAgent(session);
});
afterAll(() => own.remove());

const hello = Buffer.from('hello');
const protocol = { 'tus-resumable': '1.0.0' };
const checksumOf = (algorithm: string, bytes: Uint8Array) => ({ 'upload-checksum': `${algorithm} ${createHash(algorithm).update(bytes).digest('base64')}` });

describe('OPTIONS /api/tus', () => {
  test.each(['/api/tus', '/api/tus/mpu_x'])('%s answers what is offered, and needs no version', async (path) => {
    const { status, headers } = await byMethod(new URL(path, own.exchange.baseUrl), 'OPTIONS');
    expect(status).toBe(204);
    expect(Object.fromEntries(headers)).toMatchObject({
      'tus-resumable': '1.0.0', 'tus-version': '1.0.0', 'tus-max-size': String(mostBytes), 'tus-checksum-algorithm': 'md5,sha1,sha256',
      'tus-extension': 'creation,creation-with-upload,creation-defer-length,termination,expiration,checksum',
    });
    expectSafeHeaders(headers);
  });

  test('no answer lets a page of another site in', async () => {
    const origin = { origin: 'https://elsewhere.example' };
    const answers = [await lane.create({ 'upload-length': '1' }, { headers: origin }), await own.exchange.call('/api/tus', { method: 'OPTIONS', headers: origin })];
    for (const { headers } of answers) expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });
});

describe('POST /api/tus, HEAD /api/tus/{uploadId}, PATCH /api/tus/{uploadId} and DELETE /api/tus/{uploadId}', () => {
  test('an upload in three pieces becomes an ordinary share', async () => {
    const bytes = randomBytes(200_000);
    const words = { filename: 'grün.bin', filetype: 'application/x-test', ttl: '600', max_uses: '2', policy_metadata: '{"step":"1"}', of_their_own: 'words' };
    const created = await lane.create({ 'upload-length': String(bytes.length), 'upload-metadata': metadataOf(words) });
    expect([created.status, created.text]).toEqual([201, '']);
    expectSafeHeaders(created.headers);
    const address = created.headers.get('location')!;
    expect(address).toMatch(new RegExp(`^${own.exchange.baseUrl}/api/tus/mpu_[A-Za-z0-9]{24}$`));
    expect(Date.parse(created.headers.get('upload-expires')!)).toBeGreaterThan(Date.now());

    const begun = await lane.head(address);
    expect(begun).toMatchObject({ status: 200, offset: 0 });
    expect(Object.fromEntries(begun.headers)).toMatchObject({ 'upload-length': '200000', 'upload-metadata': metadataOf(words), 'cache-control': 'no-store', 'tus-resumable': '1.0.0' });
    expect(begun.headers.get('x-share-id')).toBeNull();

    for (const [from, to] of [[0, 1], [1, 100_000]] as const) {
      const answer = await lane.patch(address, from, bytes.subarray(from, to));
      expect([answer.status, answer.headers.get('upload-offset'), answer.headers.get('x-share-id'), answer.headers.get('tus-resumable')]).toEqual([204, String(to), null, '1.0.0']);
      expect(answer.headers.get('upload-expires')).toBe(created.headers.get('upload-expires'));
    }
    const last = await lane.patch(address, 100_000, bytes.subarray(100_000));
    expect([last.status, last.headers.get('upload-offset')]).toEqual([204, '200000']);
    const { id, shareId, deleteToken, ...told } = toldShare(last.headers);
    expect(told).toEqual({ shareUrl: `${own.exchange.baseUrl}/s/${shareId}`, downloadUrl: `${own.exchange.baseUrl}/api/dl/${id}?share_id=${shareId}`, expiresAt: told.expiresAt });

    const { json } = await own.exchange.must(`/api/share/${shareId}`);
    expect(json).toMatchObject({ type: 'file', filename: 'grün.bin', mimeType: 'application/x-test', size: 200_000, policy: { mode: 'open', maxUses: 2, metadata: { step: '1' } } });
    expect((await own.exchange.must(told.downloadUrl)).bytes.equals(bytes)).toBe(true);
    const middle = await own.exchange.must(told.downloadUrl, { headers: { range: 'bytes=99990-100009' } });
    expect(middle.bytes.equals(bytes.subarray(99_990, 100_010))).toBe(true);
    expectRefusal(await own.exchange.call(told.downloadUrl), 410, 'share_use_limit_exceeded');
    await own.exchange.must(`/api/dl/${id}`, { method: 'DELETE', headers: { 'x-delete-token': deleteToken } });
    expectRefusal(await own.exchange.call(`/api/share/${shareId}`), 404, 'share_not_found_or_expired');
  });

  test.each([['nothing', 0], ['one byte', 1], ['the most', mostBytes]])('%s can be sent, after the creation or with it', async (_title, size) => {
    const bytes = randomBytes(size);
    const address = await lane.begin(size);
    if (size > 0) expect((await lane.patch(address, 0, bytes)).status).toBe(204);
    const separate = toldShare((await lane.head(address)).headers);
    expect((await own.exchange.must(separate.downloadUrl)).bytes.equals(bytes)).toBe(true);

    const together = await lane.create({ 'upload-length': String(size) }, {}, bytes);
    expect([together.status, together.headers.get('upload-offset')]).toEqual([201, String(size)]);
    expect(together.json).toEqual(toldShare(together.headers));
    expect((await own.exchange.must(together.json.downloadUrl)).bytes.equals(bytes)).toBe(true);
  });

  test('a part of the bytes may come with the creation', async () => {
    const created = await lane.create({ 'upload-length': '10' }, {}, hello);
    expect([created.status, created.headers.get('upload-offset'), created.text]).toEqual([201, '5', '']);
    const last = await lane.patch(created.headers.get('location')!, 5, hello);
    expect((await own.exchange.must(toldShare(last.headers).downloadUrl)).text).toBe('hellohello');
  });

  test('the length may be said later, once, and not below what is stored', async () => {
    const address = (await lane.create({ 'upload-defer-length': '1' })).headers.get('location')!;
    expect((await lane.head(address)).headers.get('upload-defer-length')).toBe('1');
    expect((await lane.patch(address, 0, hello)).status).toBe(204);
    expectRefusal(await lane.patch(address, 5, hello, { headers: { 'upload-length': '4' } }), 400, 'invalid_request');
    expectRefusal(await lane.patch(address, 5, hello, { headers: { 'upload-length': String(mostBytes + 1) } }), 413, 'payload_too_large', 'Upload-Length');
    expect((await lane.patch(address, 5, hello.subarray(0, 2), { headers: { 'upload-length': '10' } })).status).toBe(204);
    expect((await lane.head(address)).headers.get('upload-length')).toBe('10');
    expectRefusal(await lane.patch(address, 7, hello.subarray(2), { headers: { 'upload-length': '10' } }), 400, 'invalid_request');
    const last = await lane.patch(address, 7, hello.subarray(2));
    expect((await own.exchange.must(toldShare(last.headers).downloadUrl)).text).toBe('hellohello');
  });

  test('a sender that never said the length is bounded by the deployment', async () => {
    const address = (await lane.create({ 'upload-defer-length': '1' })).headers.get('location')!;
    expectRefusal(await lane.patch(address, 0, randomBytes(mostBytes + 1)), 413, 'payload_too_large');
    const { offset } = await lane.head(address);
    expect(offset).toBeLessThanOrEqual(mostBytes);
  });

  test('who finds every byte stored is told of the share again', async () => {
    const address = await lane.begin(5, { filename: 'a' }, { bearer: agent.key });
    const last = await lane.patch(address, 0, hello, { bearer: agent.key });
    const again = await lane.head(address, { bearer: agent.key });
    expect(again.offset).toBe(5);
    expect(toldShare(again.headers)).toEqual(toldShare(last.headers));
    const stranger = await lane.head(address);
    expect([stranger.status, stranger.headers.get('x-delete-token')]).toEqual([401, null]);
  });

  test('an upload for agents is fetched with a grant, and the record tells of it', async () => {
    const address = await lane.begin(5, { filename: 'a', auth_mode: 'agent', allowed_agent_ids: `${agent.agentId}, another` }, { bearer: session });
    const { id, shareId } = toldShare((await lane.patch(address, 0, hello, { bearer: session })).headers);
    const grant = await own.exchange.grant(shareId, agent.key);
    expect((await own.exchange.must(`/api/dl/${id}`, { headers: { 'x-access-grant': grant } })).text).toBe('hello');
    const types = (await own.exchange.events(session, { shareId }, 5)).map(({ eventType }) => eventType);
    expect(types).toEqual(expect.arrayContaining(['upload.initialized', 'upload.completed', 'transfer.stored', 'share.created', 'transfer.fetched']));
  });

  test('ended by its sender it is gone, and ending it again does no harm', async () => {
    const address = await lane.begin(10, { filename: 'a' }, { bearer: session });
    await lane.patch(address, 0, hello, { bearer: session });
    const ended = await lane.end(address, { bearer: session });
    expect([ended.status, ended.text, ended.headers.get('tus-resumable')]).toEqual([204, '', '1.0.0']);
    expect((await lane.end(address, { bearer: session })).status).toBe(204);
    expect((await lane.head(address, { bearer: session })).status).toBe(404);
    expectRefusal(await lane.patch(address, 5, hello, { bearer: session }), 404, 'multipart_upload_not_found');
    const [aborted] = await own.exchange.events(session, { eventType: 'upload.aborted' });
    expect(aborted).toMatchObject({ data: { uploadId: address.split('/').at(-1), size: 10 } });
  });

  test('a completed one is ended by deleting its transfer', async () => {
    const created = await lane.create({ 'upload-length': '5' }, {}, hello);
    expectRefusal(await lane.end(created.headers.get('location')!), 409, 'upload_state_conflict');
    expect((await own.exchange.must(created.json.downloadUrl)).text).toBe('hello');
  });

  test('the same Idempotency-Key with the same words begins one upload', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const fields = { 'upload-length': '5', 'upload-metadata': metadataOf({ filename: 'a' }) };
    const [first, again] = [await lane.create(fields, { headers }), await lane.create(fields, { headers })];
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
    expectRefusal(await lane.create({ ...fields, 'upload-length': '6' }, { headers }), 422, 'idempotency_key_reused');
  });
});

describe('a resumable upload that breaks', () => {
  const bytes = randomBytes(300_000);

  test('keeps what came, and goes on from there', async () => {
    const address = await lane.begin(bytes.length);
    await leaveMidBody(address, { method: 'PATCH', headers: { ...protocol, 'Upload-Offset': '0', 'Content-Type': bytesType }, announced: bytes.length }, bytes.subarray(0, 123_456));
    await expect.poll(async () => (await lane.head(address)).offset, { timeout: 10_000 }).toBe(123_456);
    const last = await lane.patch(address, 123_456, bytes.subarray(123_456));
    expect((await own.exchange.must(toldShare(last.headers).downloadUrl)).bytes.equals(bytes)).toBe(true);
  });

  test('is taken over by its sender while the earlier connection still seems alive, whose late bytes count for nothing', async () => {
    const address = await lane.begin(bytes.length);
    const hanging = await openRaw(own.exchange.baseUrl);
    hanging.send(`PATCH ${new URL(address).pathname} HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: ${bytesType}\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    hanging.send(bytes.subarray(0, 1_000));
    await expect.poll(async () => (await lane.head(address)).offset, { timeout: 10_000 }).toBe(1_000);
    expect((await lane.patch(address, 1_000, bytes.subarray(1_000, 2_000))).status).toBe(204);
    hanging.send(Buffer.alloc(bytes.length - 1_000));
    const [late] = await hanging.responses(1);
    expect(late!.status).toBe(409);
    hanging.close();
    const last = await lane.patch(address, 2_000, bytes.subarray(2_000));
    expect((await own.exchange.must(toldShare(last.headers).downloadUrl)).bytes.equals(bytes)).toBe(true);
  });

  test('with a checksum counts nothing of a piece that did not come whole', async () => {
    const address = await lane.begin(bytes.length);
    const headers = { ...protocol, 'Upload-Offset': '0', 'Content-Type': bytesType, ...checksumOf('sha256', bytes) };
    await leaveMidBody(address, { method: 'PATCH', headers, announced: bytes.length }, bytes.subarray(0, 200_000));
    expect((await lane.head(address)).offset).toBe(0);
    const last = await lane.patch(address, 0, bytes, { headers: checksumOf('sha256', bytes) });
    expect((await own.exchange.must(toldShare(last.headers).downloadUrl)).bytes.equals(bytes)).toBe(true);
  });

  test('eight senders of the same piece at once: it counts once', async () => {
    const address = await lane.begin(bytes.length);
    const answers = await Promise.all(Array.from({ length: 8 }, () => lane.patch(address, 0, bytes)));
    expect(answers.every(({ status }) => status === 204 || status === 409)).toBe(true);
    const { headers, offset } = await lane.head(address);
    const share = offset === bytes.length ? toldShare(headers) : toldShare((await lane.patch(address, offset, bytes.subarray(offset))).headers);
    expect((await own.exchange.must(share.downloadUrl)).bytes.equals(bytes)).toBe(true);
  });
});

describe('Upload-Checksum', () => {
  test.each(['md5', 'sha1', 'sha256'])('%s: what does not have it is answered 460 and does not count', async (algorithm) => {
    const address = await lane.begin(5);
    const wrong = await lane.patch(address, 0, Buffer.from('hullo'), { headers: checksumOf(algorithm, hello) });
    expect([wrong.status, wrong.headers.get('tus-resumable')]).toEqual([460, '1.0.0']);
    expect((await lane.head(address)).offset).toBe(0);
    const last = await lane.patch(address, 0, hello, { headers: checksumOf(algorithm, hello) });
    expect((await own.exchange.must(toldShare(last.headers).downloadUrl)).text).toBe('hello');
  });

  test.each(['crc32 AAAAAA==', 'sha1', 'sha1 !', 'sha1 AAAA', '__proto__ AAAA', 'SHA1 qvTGHdzF6KLavt4PO0gs2a6pQ00='])('%s is refused by name', async (value) => {
    const address = await lane.begin(5);
    expectRefusal(await lane.patch(address, 0, hello, { headers: { 'upload-checksum': value } }), 400, 'invalid_request', 'Upload-Checksum');
    expect((await lane.head(address)).offset).toBe(0);
  });
});

describe('what the protocol does not allow', () => {
  test('another offset answers upload_offset_mismatch and changes nothing, before the bytes are sent', async () => {
    const address = await lane.begin(10);
    await lane.patch(address, 0, hello);
    for (const offset of [0, 4, 6, 10, 999]) expectRefusal(await lane.patch(address, offset, hello.subarray(0, 1)), 409, 'upload_offset_mismatch');
    const { status, wasTold } = await askBeforeSending(address, { method: 'PATCH', headers: { ...protocol, 'upload-offset': '1', 'content-type': bytesType } }, hello);
    expect([status, wasTold]).toEqual([409, false]);
    expect((await lane.head(address)).offset).toBe(5);
    const asked = await askBeforeSending(address, { method: 'PATCH', headers: { ...protocol, 'upload-offset': '5', 'content-type': bytesType } }, hello);
    expect([asked.status, asked.wasTold]).toEqual([204, true]);
  });

  test.each(['mpu_doesnotexist', 'mpu_', 'trf_x', '24e533e02ec3bc40c387f1a0e460e216', '%00', '..%2fx'])('%s is an unknown upload', async (id) => {
    const address = `/api/tus/${id}`;
    const { status } = await lane.head(address);
    expect(status).toBe(404);
    expectRefusal(await lane.patch(address, 0, hello), 404, 'multipart_upload_not_found');
    expectRefusal(await lane.end(address), 404, 'multipart_upload_not_found');
  });

  test.each([undefined, '0.2.2', '1.0.1', 'x'])('the version %s answers 412 and which one is spoken', async (version) => {
    const address = await lane.begin(5);
    const headers: Record<string, string> = { ...(version && { 'tus-resumable': version }), 'upload-offset': '0', 'upload-length': '5', 'content-type': bytesType };
    for (const [path, method] of [['/api/tus', 'POST'], [address, 'PATCH'], [address, 'DELETE']] as const) {
      const answer = await own.exchange.call(path, { method, headers, ...(method === 'PATCH' && { body: 'hello' }) });
      expectRefusal(answer, 412, 'precondition_failed');
      expect(answer.headers.get('tus-version')).toBe('1.0.0');
    }
    expect((await byMethod(address, 'HEAD', version ? { 'tus-resumable': version } : {})).status).toBe(412);
    expect((await lane.head(address)).offset).toBe(0);
  });

  test('bytes under another type', async () => {
    const address = await lane.begin(5);
    for (const type of ['application/octet-stream', 'multipart/form-data; boundary=x', 'application/json']) {
      expectRefusal(await lane.patch(address, 0, hello, { headers: { 'content-type': type } }), 415, 'unsupported_media_type');
    }
    expect((await lane.head(address)).offset).toBe(0);
  });

  test('more bytes than were announced, or than the deployment takes', async () => {
    const address = await lane.begin(4);
    expectRefusal(await lane.patch(address, 0, hello), 413, 'payload_too_large');
    expect((await lane.head(address)).offset).toBe(0);
    expectRefusal(await lane.create({ 'upload-length': String(mostBytes + 1) }), 413, 'payload_too_large', 'Upload-Length');
  });

  test.each<[string, Record<string, string>]>([
    ['no length', {}], ['a length and a promise of one', { 'upload-length': '5', 'upload-defer-length': '1' }], ['a promise that is not 1', { 'upload-defer-length': '2' }],
    ['a negative length', { 'upload-length': '-1' }], ['a length that is no number', { 'upload-length': '5x' }],
    ['metadata that is not base64', { 'upload-length': '5', 'upload-metadata': 'filename !' }], ['a key of the prototype', { 'upload-length': '5', 'upload-metadata': '__proto__ eA==' }],
    ['the same key twice', { 'upload-length': '5', 'upload-metadata': 'a eA==,a eA==' }], ['an upload of uploads', { 'upload-length': '5', 'upload-concat': 'partial' }],
  ])('a creation with %s', async (_title, fields) => {
    expectRefusal(await lane.create(fields), 400, 'invalid_request');
  });

  test.each(['', '-1', '1.0', 'x', '5, 5'])('an offset that is %s', async (offset) => {
    const address = await lane.begin(10);
    expectRefusal(await lane.patch(address, offset, hello), 400, 'invalid_request');
    expect((await lane.head(address)).offset).toBe(0);
  });

  test.each<[string, Record<string, string>, string]>([
    ['a short ttl', { ttl: '29' }, 'ttl'], ['an empty allow list', { allowed_agent_ids: '' }, 'allowed_agent_ids'], ['an agent mode without agents', { auth_mode: 'agent' }, 'allowed_agent_ids'],
    ['uses that are no number', { max_uses: 'many' }, 'max_uses'], ['broken metadata', { policy_metadata: '{' }, 'policy_metadata'], ['an unknown template', { policy_template_id: 'x' }, 'policy_template_id'],
    ['a path as filename', { filename: '../x' }, 'filename'], ['a filename with U+0000', { filename: 'a\0b' }, 'filename'], ['a type that is none', { filetype: 'x' }, 'filetype'], ['a passcode', { passcode: 'open sesame' }, 'passcode'],
  ])('%s is named as the client wrote it', async (_title, words, name) => {
    expectRefusal(await lane.create({ 'upload-length': '5', 'upload-metadata': metadataOf({ filename: 'a', ...words }) }), 400, 'invalid_request', name);
  });

  test('a passcode comes in a header of its own, since the metadata is kept as it came', async () => {
    const headers = { 'x-share-passcode': 'öpen sesame' };
    const asBytes = { 'x-share-passcode': Buffer.from(headers['x-share-passcode']).toString('latin1') };
    const { json } = await lane.create({ 'upload-length': '5' }, { headers: asBytes }, hello);
    expectRefusal(await own.exchange.call(json.downloadUrl), 401, 'passcode_required');
    expect((await own.exchange.must(json.downloadUrl, { headers: asBytes })).text).toBe('hello');
    expectRefusal(await lane.create({ 'upload-length': '5' }, { headers: { 'x-share-passcode': 'abc' } }), 400, 'invalid_request', 'X-Share-Passcode');
  });

  test('a policy field without a value is no absent one', async () => {
    expectRefusal(await lane.create({ 'upload-length': '5', 'upload-metadata': 'allowed_agent_ids' }), 400, 'invalid_request', 'allowed_agent_ids');
  });

  test('other methods answer method_not_allowed, and what lies below is nothing', async () => {
    const address = await lane.begin(5);
    for (const [path, method, allow] of [['/api/tus', 'GET', 'OPTIONS, POST'], ['/api/tus', 'PATCH', 'OPTIONS, POST'], [address, 'GET', 'DELETE, HEAD, OPTIONS, PATCH'], [address, 'POST', 'DELETE, HEAD, OPTIONS, PATCH']] as const) {
      const answer = await own.exchange.call(path, { method, headers: { ...protocol, 'x-http-method-override': 'PATCH' } });
      expectRefusal(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe(allow);
    }
    expectRefusal(await own.exchange.call(`${address}/x`, { method: 'PATCH' }), 404, 'route_not_found');
    expectRefusal(await own.exchange.call('/api/upload', { method: 'POST' }), 410, 'transfer_surface_retired');
  });
});

describe('a deployment whose uploads expire soon and whose senders must be known', () => {
  let strict: OwnStack;
  beforeAll(async () => {
    strict = await startOwnStack({ gateway: { LEGACY_SURFACES: 'upload, tus' }, policy: { ANONYMOUS_CREATE: 'deny' }, storage: { UPLOAD_TTL_SECONDS: '2', SWEEP_SECONDS: '1' } });
  });
  afterAll(() => strict.remove());

  test('an upload that is not whole in time answers upload_expired, and the sweep tells it', async () => {
    const bearer = await strict.exchange.signIn();
    const tus = tusLane(strict.exchange);
    const created = await tus.create({ 'upload-length': '10' }, { bearer }, hello);
    const address = created.headers.get('location')!;
    await expect.poll(async () => (await tus.head(address, { bearer })).status, { timeout: 10_000 }).toBe(410);
    expectRefusal(await tus.patch(address, 5, hello, { bearer }), 410, 'upload_expired');
    expect((await tus.end(address, { bearer })).status).toBe(204);
    const [expired] = await strict.exchange.events(bearer, { eventType: 'upload.expired' });
    expect(expired).toMatchObject({ actor: { type: 'service' }, data: { uploadId: address.split('/').at(-1) } });
  });

  test('an anonymous creation is refused, and the maximum is for senders', async () => {
    expectRefusal(await tusLane(strict.exchange).create({ 'upload-length': '5' }), 401, 'agent_auth_required');
    expect((await strict.exchange.call('/api/tus', { method: 'OPTIONS' })).headers.get('tus-max-size')).toBeNull();
    expect((await strict.exchange.call('/api/tus', { method: 'OPTIONS', bearer: await strict.exchange.signIn() })).headers.get('tus-max-size')).not.toBeNull();
  });
});
