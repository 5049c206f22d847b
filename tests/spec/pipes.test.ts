/** A share whose bytes are fetched while their sender still writes them (interface chapter: Pipes). */
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { follow, makePipe, readFrom, sendAll, sendTo } from '../support/pipes.ts';
import { chunked, digestOf, sha256Of } from '../support/planned.ts';
import { openRaw } from '../support/raw-http.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must } = exchange;

let session: string;
beforeAll(async () => { session = await exchange.signIn(); });

describe('POST /api/pipe', () => {
  test('answers an upload response with pipeId and uploadUrl, before any byte is there', async () => {
    const answer = await call('/api/pipe', { json: { filename: 'log.txt', mimeType: 'text/plain', ttl: 600 }, bearer: session });
    expect(answer.status).toBe(201);
    const { id, shareId, pipeId, uploadUrl, downloadUrl, shareUrl, expiresAt, deleteToken } = answer.json as Record<string, string>;
    expect(pipeId).toBe(id);
    expect(uploadUrl).toBe(`${exchange.baseUrl}/api/pipe/${id}`);
    expect(downloadUrl).toBe(`${exchange.baseUrl}/api/dl/${id}?share_id=${shareId}`);
    expect(shareUrl).toBe(`${exchange.baseUrl}/s/${shareId}`);
    expect(deleteToken).toMatch(/^dlt_/);
    expect(Math.abs(Date.parse(expiresAt!) - Date.now() - 600_000)).toBeLessThan(60_000);
  });

  test('resolves to type pipe, with its id and without fileId and size', async () => {
    const pipe = await makePipe(exchange, { policyMetadata: { of: 'mine' }, maxUses: 3 }, { bearer: session });
    const { json } = await must(`/api/share/${pipe.shareId}`);
    expect(json).toMatchObject({ type: 'pipe', targetId: pipe.pipeId, pipeId: pipe.pipeId, policy: { maxUses: 3, metadata: { of: 'mine' } } });
    for (const field of ['fileId', 'folderId', 'size', 'filename', 'mimeType', 'expiresAt']) expect(json).not.toHaveProperty(field);
    const listed = (await must(`/api/shares?targetId=${pipe.pipeId}`, { bearer: session })).json.shares as object[];
    expect(listed).toMatchObject([{ type: 'pipe', shareId: pipe.shareId, state: 'active' }]);
  });

  test('needs no body, and sent again with its Idempotency-Key answers the same', async () => {
    expect((await call('/api/pipe', { method: 'POST' })).status).toBe(201);
    const headers = { 'idempotency-key': randomBytes(12).toString('hex') };
    const answers = await Promise.all(Array.from({ length: 5 }, () => call('/api/pipe', { json: { ttl: 600 }, headers, bearer: session })));
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(201));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expectRefusal(await call('/api/pipe', { json: { ttl: 601 }, headers, bearer: session }), 422, 'idempotency_key_reused');
    await sendAll(exchange, answers[0]!.json, 'written');
    expect((await call('/api/pipe', { json: { ttl: 600 }, headers, bearer: session })).text).toBe(answers[0]!.text);
  });

  test('has the bounds of every share', async () => {
    for (const fields of [{ ttl: 29 }, { authMode: 'agent' }, { filename: 'a/b' }, { size: 3 }, { release: 'live' }]) {
      expectRefusal(await call('/api/pipe', { json: fields }), 400, 'invalid_request');
    }
    expectRefusal(await call('/api/pipe', { json: { agentGroupId: 'agrp_none' }, bearer: session }), 404, 'group_not_found');
  });
});

describe('PUT /api/pipe/{pipeId}', () => {
  test('a reader has the first bytes while the sender holds the next ones back', async () => {
    const pipe = await makePipe(exchange);
    const sender = sendTo(pipe);
    await sender.write('first');
    const reader = await follow(pipe);
    expect((await reader.take(5)).toString()).toBe('first');
    for (const word of ['second', 'third']) {
      await sender.write(word);
      expect((await reader.take(word.length)).toString()).toBe(word);
    }
    expect(await sender.end()).toEqual({ status: 200, json: { pipeId: pipe.pipeId, size: 16, sha256: sha256Of(Buffer.from('firstsecondthird')) } });
    expect(await reader.rest()).toEqual({ bytes: Buffer.alloc(0), isWhole: true });
  });

  test('readers that come before the first byte, in the middle and after the last have the same bytes', async () => {
    const bytes = randomBytes(3 * 1_024 ** 2 + 17);
    const pipe = await makePipe(exchange);
    const early = follow(pipe);
    const sender = sendTo(pipe);
    await sender.write(bytes.subarray(0, 1_500_000));
    const before = await early;
    const middle = await follow(pipe);
    const [one, other] = [await before.take(1_400_000), await middle.take(1_000)];
    await sender.end(bytes.subarray(1_500_000));
    const late = await follow(pipe);
    for (const [head, reader] of [[one, before], [other, middle], [Buffer.alloc(0), late]] as const) {
      const { bytes: rest, isWhole } = await reader.rest();
      expect(isWhole).toBe(true);
      expect(sha256Of(Buffer.concat([head, rest]))).toBe(sha256Of(bytes));
    }
  });

  test('once the last byte is there it is a transfer like any other: length, ranges, digest', async () => {
    const bytes = randomBytes(100_000);
    const pipe = await makePipe(exchange, { filename: 'data.bin', mimeType: 'application/x-data' });
    expect((await sendAll(exchange, pipe, chunked(bytes))).json).toMatchObject({ size: bytes.length });
    const whole = await call(pipe.downloadUrl);
    expect(whole.bytes.equals(bytes)).toBe(true);
    expect(Object.fromEntries(whole.headers)).toMatchObject({ 'content-length': '100000', 'content-type': 'application/x-data', 'accept-ranges': 'bytes', 'repr-digest': digestOf(bytes), etag: `"${pipe.id}"` });
    const range = await call(pipe.downloadUrl, { headers: { range: 'bytes=99990-' } });
    expect([range.status, range.bytes]).toEqual([206, bytes.subarray(99_990)]);
    expect((await must(`/api/share/${pipe.shareId}`)).json.type).toBe('pipe');
  });

  test('a pipe may end without a byte', async () => {
    const pipe = await makePipe(exchange);
    const early = follow(pipe);
    expect((await sendTo(pipe).end()).json).toMatchObject({ size: 0 });
    expect(await (await early).rest()).toEqual({ bytes: Buffer.alloc(0), isWhole: true });
    expect((await call(pipe.downloadUrl)).headers.get('content-length')).toBe('0');
  });

  test('while it is written, HEAD shows no length and spends nothing, and a range is the whole', async () => {
    const pipe = await makePipe(exchange, { maxUses: 1 });
    const sender = sendTo(pipe);
    await sender.write('begun ');
    const head = await headOf(exchange, pipe.downloadUrl);
    expect([head.status, head.headers.get('content-length'), head.headers.get('accept-ranges'), head.headers.get('repr-digest')]).toEqual([200, null, 'none', null]);
    expect((await call(pipe.downloadUrl, { headers: { 'if-none-match': `"${pipe.id}"` } })).status).toBe(304);
    expectRefusal(await call(pipe.downloadUrl, { headers: { 'if-match': '"other"' } }), 412, 'precondition_failed');
    const reader = await follow(pipe, { headers: { range: 'bytes=2-3' } });
    expect(reader.headers).toMatchObject({ 'accept-ranges': 'none', 'transfer-encoding': 'chunked', 'x-remaining-uses': '0' });
    expect(reader.headers).not.toHaveProperty('content-range');
    await sender.end('ended');
    expect((await reader.rest()).bytes.toString()).toBe('begun ended');
    expectRefusal(await call(pipe.downloadUrl), 410, 'share_use_limit_exceeded');
  });

  test('takes one request in its life: a second is upload_state_conflict, beside the first and after it', async () => {
    const pipe = await makePipe(exchange);
    const sender = sendTo(pipe);
    await sender.write('mine');
    const reader = await follow(pipe);
    expectRefusal(await sendAll(exchange, pipe, 'another'), 409, 'upload_state_conflict');
    await sender.end();
    expect(await reader.rest()).toEqual({ bytes: Buffer.from('mine'), isWhole: true });
    expectRefusal(await sendAll(exchange, pipe, 'late'), 409, 'upload_state_conflict');
    expect((await call(pipe.downloadUrl)).text).toBe('mine');
  });

  test('of many that come at once one writes', async () => {
    const pipe = await makePipe(exchange);
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => sendAll(exchange, pipe, `sender ${index}`)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409) as number[]]);
    expect((await call(pipe.downloadUrl)).text).toBe(`sender ${answers.findIndex(({ status }) => status === 200)}`);
  });

  test('a Content-Digest that does not hold fails the pipe, and its readers', async () => {
    const pipe = await makePipe(exchange);
    const sender = sendTo(pipe, { headers: { 'x-delete-token': pipe.deleteToken, 'content-digest': digestOf(Buffer.from('other')) } });
    await sender.write('these');
    const reader = await follow(pipe);
    expect(await sender.end()).toMatchObject({ status: 400, json: { code: 'digest_mismatch' } });
    expect(await reader.rest()).toMatchObject({ isWhole: false });
    expectRefusal(await call(pipe.downloadUrl), 404, 'share_not_found_or_expired');
    const good = await makePipe(exchange);
    expect((await sendAll(exchange, good, 'these', { headers: { 'x-delete-token': good.deleteToken, 'content-digest': digestOf(Buffer.from('these')) } })).status).toBe(200);
  });

  test('is written by who holds its delete token, by its owner or by the agent that made it', async () => {
    const agent = await exchange.makeAgent(session);
    const other = await exchange.makeAgent(session);
    const byAgent = await makePipe(exchange, {}, { bearer: agent.key });
    const bare = { method: 'PUT', body: 'x', headers: {} };
    expectRefusal(await call(byAgent.uploadUrl, bare), 401, 'delete_token_required');
    expectRefusal(await call(byAgent.uploadUrl, { ...bare, bearer: other.key }), 401, 'delete_token_required');
    expectRefusal(await call(byAgent.uploadUrl, { ...bare, headers: { 'x-delete-token': (await makePipe(exchange)).deleteToken } }), 403, 'invalid_delete_token');
    expect((await call(byAgent.uploadUrl, { ...bare, bearer: agent.key })).status).toBe(200);
    const byOwner = await makePipe(exchange, {}, { bearer: session });
    expect((await call(byOwner.uploadUrl, { ...bare, bearer: session })).status).toBe(200);
    const byNobody = await makePipe(exchange);
    expectRefusal(await call(byNobody.uploadUrl, { ...bare, bearer: session }), 401, 'delete_token_required');
    const file = await exchange.upload('a file');
    expectRefusal(await call(`/api/pipe/${file.id}`, { ...bare, headers: { 'x-delete-token': file.deleteToken } }), 404, 'transfer_not_found');
    expectRefusal(await call('/api/pipe/none', bare), 400, 'invalid_request', 'pipeId');
    expectRefusal(await call(`${byNobody.uploadUrl}?a=b`, bare), 400, 'invalid_request');
  });
});

describe('a pipe that fails', () => {
  test('because its sender is lost ends its readers with an error, never with a short success, and is gone', async () => {
    const pipe = await makePipe(exchange, {}, { bearer: session });
    const sender = sendTo(pipe);
    await sender.write('all that came');
    const readers = await Promise.all([follow(pipe), follow(pipe), follow(pipe)]);
    expect((await readers[0]!.take(13)).toString()).toBe('all that came');
    sender.vanish();
    for (const reader of readers) expect((await reader.rest()).isWhole).toBe(false);
    expect(await exchange.events(session, { shareId: pipe.shareId, eventType: 'share.ended' })).toHaveLength(1);
    expectRefusal(await call(pipe.downloadUrl), 404, 'share_not_found_or_expired');
    expectRefusal(await call(`/api/share/${pipe.shareId}`), 404, 'share_not_found_or_expired');
    expectRefusal(await sendAll(exchange, pipe, 'again'), 409, 'upload_state_conflict');
    const events = await exchange.events(session, { targetId: pipe.pipeId, eventType: 'upload.aborted' });
    expect(events).toMatchObject([{ targetType: 'pipe', shareId: pipe.shareId, outcome: 'error', data: { lane: 'pipe', reason: 'sender_lost' } }]);
  });

  test('because its sender stops in the middle of an announced length fails the same way', async () => {
    const pipe = await makePipe(exchange);
    const sender = sendTo(pipe, { headers: { 'x-delete-token': pipe.deleteToken, 'content-length': '1000' } });
    await sender.write('some of it');
    const reader = await follow(pipe);
    sender.vanish();
    expect((await reader.rest()).isWhole).toBe(false);
  });

  test('because more comes than its plan allows is payload_too_large', async () => {
    const { plan } = await exchange.plan({ filename: 'ten.txt', size: 10, release: 'live' });
    const pipe = (await must('/api/pipe', { method: 'POST', headers: { 'x-transfer-plan': plan } })).json;
    expectRefusal(await sendAll(exchange, pipe, 'announced too long'), 413, 'payload_too_large');
    const sender = sendTo(pipe);
    await sender.write('first');
    const reader = await follow(pipe);
    expect(await sender.end('second')).toMatchObject({ status: 413, json: { code: 'payload_too_large' } });
    expect((await reader.rest()).isWhole).toBe(false);
    expectRefusal(await call(pipe.downloadUrl), 404, 'share_not_found_or_expired');
  });

  test('because it is deleted cuts its readers off and tells its sender', async () => {
    const pipe = await makePipe(exchange);
    const sender = sendTo(pipe);
    await sender.write('begun');
    const reader = await follow(pipe);
    expect((await call(`/api/dl/${pipe.id}`, { method: 'DELETE', headers: { 'x-delete-token': pipe.deleteToken } })).json).toEqual({ id: pipe.id, deleted: true });
    expect((await reader.rest()).isWhole).toBe(false);
    expect(await sender.end(' and on')).toMatchObject({ status: 409, json: { code: 'upload_state_conflict' } });
    expectRefusal(await call(pipe.downloadUrl), 404, 'share_not_found_or_expired');
  });
});

test('a finished pipe that is deleted lets fetches under way end, as any transfer', async () => {
  const bytes = randomBytes(4 * 1_024 ** 2);
  const pipe = await makePipe(exchange);
  await sendAll(exchange, pipe, bytes);
  const reader = await follow(pipe);
  await must(`/api/dl/${pipe.id}`, { method: 'DELETE', headers: { 'x-delete-token': pipe.deleteToken } });
  const rest = await reader.rest();
  expect([rest.isWhole, sha256Of(rest.bytes)]).toEqual([true, sha256Of(bytes)]);
});

test('a reader without chunked transfer, to whom a break would look like an end, is refused while the bytes come', async () => {
  const pipe = await makePipe(exchange, { maxUses: 1 });
  const sender = sendTo(pipe);
  await sender.write('live');
  const { pathname, search } = new URL(pipe.downloadUrl);
  const connection = await openRaw(exchange.baseUrl);
  connection.send(`GET ${pathname}${search} HTTP/1.0\r\n\r\n`);
  const [response] = await connection.untilClosed();
  expect(response).toMatchObject({ status: 400, body: expect.stringContaining('HTTP/1.1') as string });
  await sender.end();
  expect((await readFrom(pipe.downloadUrl)).status).toBe(200);
});
