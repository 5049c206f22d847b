/** The native multipart lane, as it is meant to be used (interface chapter: Native multipart lane). */
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Uploaded } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { MiB, multipartLane, partsOf, smallestPart } from '../support/multipart-lane.ts';
import { digestOf, sha256Of } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { must, plan, call } = exchange;
const lane = multipartLane(exchange);
let session: string;

beforeAll(async () => { session = await exchange.signIn(); });

const fetched = async ({ downloadUrl }: Uploaded) => (await must(downloadUrl)).bytes;

describe('POST /api/upload/multipart/init', () => {
  test('answers the upload, every field in its shape', async () => {
    const { status, json } = await lane.init({ filename: 'a.bin', size: 12 * MiB, partSize: 5 * MiB });
    expect(status).toBe(201);
    expect(json).toEqual({
      uploadId: expect.stringMatching(/^mpu_[A-Za-z0-9]{20,}$/),
      transferId: expect.stringMatching(/^trf_[A-Za-z0-9]{20,}$/),
      state: 'initialized',
      partSize: 5 * MiB,
      partCount: 3,
      maxParallelParts: expect.any(Number),
      expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    expect(Date.parse(json.expiresAt)).toBeGreaterThan(Date.now());
    expect((await headOf(exchange, `/api/dl/${json.transferId}`)).status).toBe(404);
  });

  test('without a part size, the exchange chooses one', async () => {
    expect((await lane.init({ filename: 'a', size: 100 * MiB })).json).toMatchObject({ partSize: 16 * MiB, partCount: 7 });
    expect((await lane.init({ filename: 'a', size: 1 })).json).toMatchObject({ partCount: 1 });
  });

  test.each<[string, object]>([
    ['filename', { filename: undefined }], ['filename', { filename: '../a' }], ['size', { size: undefined }], ['size', { size: 0 }], ['size', { size: 1.5 }],
    ['ttl', { ttl: 29 }], ['ttl', { ttl: 604_801 }], ['maxUses', { maxUses: 0 }], ['partSize', { partSize: 5 * MiB - 1 }], ['allowedAgentIds', { authMode: 'agent' }],
    ['mimeType', { mimeType: 'x' }], ['policyTemplateId', { policyTemplateId: 'x' }], ['lane', { lane: 'multipart' }], ['max_uses', { max_uses: 1 }],
  ])('a bad %s is refused by name', async (field, fields) => {
    expectRefusal(await lane.init({ filename: 'a', size: 1, ...fields }), 400, 'invalid_request', field);
  });

  test('a size over 10 GiB is too large', async () => {
    expectRefusal(await lane.init({ filename: 'a', size: 10 * 1_024 * MiB + 1 }), 413, 'payload_too_large', 'size');
  });

  test('a credential that is sent must be good', async () => {
    expectRefusal(await lane.init({ filename: 'a', size: 1 }, { bearer: 'garbage' }), 401, 'invalid_agent_credential');
    expectRefusal(await lane.init({ filename: 'a', size: 1 }, { bearer: `aos_nobody.${'x'.repeat(43)}` }), 401, 'invalid_owner_credential');
  });
});

describe('POST /api/upload/multipart/part', () => {
  test('answers the part with its size, etag and SHA-256', async () => {
    const [bytes] = partsOf(1, 1_000) as [Buffer];
    const { uploadId } = await lane.begin(1_000);
    const { status, json } = await lane.part(uploadId, 1, bytes, { headers: { 'Content-Digest': digestOf(bytes) } });
    expect(status).toBe(200);
    expect(json).toEqual({ uploadId, partNumber: 1, size: 1_000, etag: expect.stringMatching(/^[\w-]+$/), sha256: sha256Of(bytes) });
  });

  test('takes a form whose fields come before its file', async () => {
    const parts = partsOf(2, 777);
    const { uploadId } = await lane.begin(smallestPart + 777);
    for (const [index, bytes] of parts.entries()) {
      const form = new FormData();
      form.append('uploadId', uploadId);
      form.append('partNumber', String(index + 1));
      form.append('file', new Blob([new Uint8Array(bytes)]), 'part.bin');
      const { status, json } = await call('/api/upload/multipart/part', { body: form });
      expect({ status, json }).toMatchObject({ status: 200, json: { uploadId, partNumber: index + 1, size: bytes.length, sha256: sha256Of(bytes) } });
    }
    expect((await fetched((await lane.complete(uploadId)).json)).equals(Buffer.concat(parts))).toBe(true);
  });

  test('takes a form whose fields are in the query', async () => {
    const { uploadId } = await lane.begin(3);
    const form = new FormData();
    form.append('file', new Blob(['abc']), 'part.bin');
    expect((await call(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`, { body: form })).status).toBe(200);
  });

  test('says what is missing when the file of a form comes first, or not at all', async () => {
    const { uploadId } = await lane.begin(3);
    const form = new FormData();
    form.append('file', new Blob(['abc']), 'part.bin');
    form.append('uploadId', uploadId);
    form.append('partNumber', '1');
    const answer = await call('/api/upload/multipart/part', { body: form });
    expectRefusal(answer, 400, 'invalid_request', 'uploadId');
    expect(answer.json.detail).toMatch(/before the file/);
    form.delete('file');
    expectRefusal(await call('/api/upload/multipart/part', { body: form }), 400, 'invalid_request', 'file');
  });

  test('parts may come in any order and all at once', async () => {
    const parts = partsOf(4, 12_345);
    const { uploadId } = await lane.begin(3 * smallestPart + 12_345);
    await lane.part(uploadId, 4, parts[3]!);
    await Promise.all([2, 0, 1].map((index) => lane.part(uploadId, index + 1, parts[index]!)));
    expect((await fetched((await lane.complete(uploadId)).json)).equals(Buffer.concat(parts))).toBe(true);
  });

  test('the same number again replaces the part: the old content is gone', async () => {
    const [first, second, other] = [...partsOf(2), randomBytes(smallestPart)] as [Buffer, Buffer, Buffer];
    const { uploadId } = await lane.begin(2 * smallestPart);
    const old = (await lane.part(uploadId, 1, first)).json;
    const { etag } = (await lane.part(uploadId, 2, second)).json;
    const replaced = (await lane.part(uploadId, 1, other)).json;
    expect(replaced).toMatchObject({ partNumber: 1, sha256: sha256Of(other) });
    expect(replaced.etag).not.toBe(old.etag);
    expect((await lane.status(uploadId)).json).toMatchObject({ receivedBytes: 2 * smallestPart, parts: [{ etag: replaced.etag }, { etag }] });

    expectRefusal(await lane.complete(uploadId, { parts: [{ partNumber: 1, etag: old.etag }, { partNumber: 2, etag }] }), 400, 'invalid_request', 'parts.0');
    const { json } = await lane.complete(uploadId, { parts: [{ partNumber: 1, etag: replaced.etag }, { partNumber: 2, etag }] });
    expect((await fetched(json)).equals(Buffer.concat([other, second]))).toBe(true);
  });
});

describe('POST /api/upload/multipart/complete', () => {
  test('answers the upload response of an ordinary share', async () => {
    const parts = partsOf(2, 100);
    const begun = await lane.begin(smallestPart + 100, { filename: 'two.bin', mimeType: 'application/zip', maxUses: 2, ttl: 600 });
    const listed = await lane.sendAll(begun.uploadId, parts);
    const { status, json } = await lane.complete(begun.uploadId, { parts: listed, sha256: sha256Of(Buffer.concat(parts)) });
    expect(status).toBe(201);
    expect(json).toEqual({
      id: begun.transferId,
      shareId: expect.stringMatching(/^shr_[A-Za-z0-9]{20,}$/),
      shareUrl: `${exchange.baseUrl}/s/${json.shareId}`,
      downloadUrl: `${exchange.baseUrl}/api/dl/${json.id}?share_id=${json.shareId}`,
      expiresAt: expect.stringMatching(/Z$/),
      deleteToken: expect.stringMatching(/^dlt_/),
    });
    expect((await must(`/api/share/${json.shareId}`)).json).toMatchObject({ filename: 'two.bin', mimeType: 'application/zip', size: smallestPart + 100, policy: { maxUses: 2 } });
    const answer = await must(json.downloadUrl);
    expect(answer.bytes.equals(Buffer.concat(parts))).toBe(true);
    expect(answer.headers.get('repr-digest')).toBe(digestOf(Buffer.concat(parts)));
    expect(answer.headers.get('x-remaining-uses')).toBe('1');
    expect((await must(`/api/dl/${json.id}`, { method: 'DELETE', headers: { 'X-Delete-Token': json.deleteToken } })).json).toEqual({ id: json.id, deleted: true });
  });

  test('again answers the same, delete token included', async () => {
    const { uploadId } = await lane.begin(3);
    await lane.part(uploadId, 1, Buffer.from('abc'));
    const first = await lane.complete(uploadId);
    const again = await lane.complete(uploadId);
    expect({ status: again.status, json: again.json }).toEqual({ status: 201, json: first.json });
  });

  test('50 at once make one transfer and answer the same', async () => {
    const { uploadId, transferId } = await lane.begin(3, {}, { bearer: session });
    await lane.part(uploadId, 1, Buffer.from('abc'), { bearer: session });
    const answers = await Promise.all(Array.from({ length: 50 }, () => lane.complete(uploadId, {}, { bearer: session })));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(new Set([`201 ${answers[0]!.text}`]));
    for (const eventType of ['transfer.stored', 'upload.completed']) {
      expect(await exchange.events(session, { eventType, targetId: transferId })).toHaveLength(1);
    }
  });
});

describe('POST /api/upload/multipart/abort', () => {
  test('ends the upload, and again answers the same', async () => {
    const { uploadId, transferId } = await lane.begin(3);
    await lane.part(uploadId, 1, Buffer.from('abc'));
    for (const _time of [1, 2]) {
      const { status, json } = await lane.abort(uploadId);
      expect({ status, json }).toEqual({ status: 200, json: { uploadId, state: 'aborted' } });
    }
    expect((await headOf(exchange, `/api/dl/${transferId}`)).status).toBe(404);
  });
});

describe('GET /api/upload/multipart/status', () => {
  test('shows what has arrived, in each state', async () => {
    const parts = partsOf(3, 9);
    const begun = await lane.begin(2 * smallestPart + 9);
    const { uploadId, transferId, expiresAt } = begun;
    const common = { uploadId, transferId, size: 2 * smallestPart + 9, partSize: smallestPart, expiresAt };
    expect((await lane.status(uploadId)).json).toEqual({ ...common, state: 'initialized', receivedBytes: 0, parts: [] });

    const third = (await lane.part(uploadId, 3, parts[2]!)).json;
    const first = (await lane.part(uploadId, 1, parts[0]!)).json;
    expect((await lane.status(uploadId)).json).toEqual({
      ...common, state: 'initialized', receivedBytes: smallestPart + 9,
      parts: [{ partNumber: 1, size: smallestPart, etag: first.etag }, { partNumber: 3, size: 9, etag: third.etag }],
    });

    await lane.part(uploadId, 2, parts[1]!);
    await lane.complete(uploadId);
    expect((await lane.status(uploadId)).json).toMatchObject({ ...common, state: 'completed', receivedBytes: common.size });

    const other = await lane.begin(1);
    await lane.abort(other.uploadId);
    expect((await lane.status(other.uploadId)).json).toMatchObject({ state: 'aborted' });
  });
});

describe('a planned multipart upload', () => {
  test('goes with its plan alone, whoever asked for the plan', async () => {
    const agent = await exchange.makeAgent(session);
    const parts = partsOf(2, 5);
    const planned = await plan({ filename: 'a.bin', size: smallestPart + 5, lane: 'multipart', partSize: smallestPart, ttl: 900 }, agent.key);
    const { json } = await call(planned.upload.url, { method: planned.upload.method, headers: planned.upload.headers, body: JSON.stringify({ filename: 'a.bin', size: smallestPart + 5 }) });
    expect(json).toMatchObject({ partSize: smallestPart, partCount: 2 });
    const speaker = { plan: planned.plan };
    await lane.sendAll(json.uploadId, parts, speaker);
    expect((await lane.status(json.uploadId, speaker)).json).toMatchObject({ receivedBytes: smallestPart + 5 });
    const stored = (await lane.complete(json.uploadId, {}, speaker)).json as Uploaded;
    expect((await fetched(stored)).equals(Buffer.concat(parts))).toBe(true);
    expect((await must(`/api/share/${stored.shareId}`)).json.createdByAgentId).toBe(agent.agentId);
  });
});
