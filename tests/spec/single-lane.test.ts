/** The single lane: planned bytes in one request (interface chapter: Transfer plan and creation). */
import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sharedExchange, type Uploaded } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { MiB } from '../support/multipart-lane.ts';
import { chunked, digestOf, idsOf, sha256Of, singleLane } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';
import { askBeforeSending, leaveMidBody } from '../support/unruly-client.ts';

const exchange = sharedExchange();
const { call, must, plan } = exchange;
const put = singleLane(exchange);

const planFor = (bytes: Uint8Array, fields: object = {}) => plan({ filename: 'a.bin', size: bytes.length, lane: 'single', ...fields });
const fetched = async ({ downloadUrl }: Uploaded) => (await must(downloadUrl)).bytes;

describe('PUT /api/lane/single/{planId}', () => {
  test('answers the upload response, every field in its shape', async () => {
    const planned = await planFor(Buffer.from('hello'), { ttl: 60 });
    const before = Date.now();
    const { status, json, headers } = await put(planned, Buffer.from('hello'));
    expect(status).toBe(201);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(json).toEqual({
      id: expect.stringMatching(/^trf_[A-Za-z0-9]{20,}$/),
      shareId: expect.stringMatching(/^shr_[A-Za-z0-9]{20,}$/),
      shareUrl: `${exchange.baseUrl}/s/${json.shareId}`,
      downloadUrl: `${exchange.baseUrl}/api/dl/${json.id}?share_id=${json.shareId}`,
      expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      deleteToken: expect.stringMatching(/^dlt_\S+$/),
    });
    expect(Date.parse(json.expiresAt)).toBeGreaterThanOrEqual(before + 59_000);
    expect(Date.parse(json.expiresAt)).toBeLessThanOrEqual(Date.now() + 61_000);
    expect(idsOf(planned)).toEqual({ transferId: json.id, shareId: json.shareId });
  });

  test.each([0, 1, 32_767, 32_768, 32_769, 65_536, MiB + 1])('%i bytes come back as they went in, with and without Content-Length', async (size) => {
    const bytes = randomBytes(size);
    for (const body of [bytes, chunked(bytes)]) {
      const stored = (await put(await planFor(bytes, { size: Math.max(size, 1) }), body)).json as Uploaded;
      expect((await fetched(stored)).equals(bytes)).toBe(true);
      expect((await must(`/api/share/${stored.shareId}`)).json.size).toBe(size);
    }
  });

  test('a stream is planned without a size', async () => {
    const bytes = randomBytes(200_000);
    const answer = await put(await plan({ filename: 'stream.bin' }), chunked(bytes));
    expect(answer.status).toBe(201);
    expect((await fetched(answer.json)).equals(bytes)).toBe(true);
  });

  test('64 MiB stream in and out with the same hash', async () => {
    const piece = randomBytes(MiB);
    const hash = createHash('sha256');
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        if (sent === 64) return controller.close();
        piece.writeUInt32BE(sent += 1, 0);
        hash.update(piece);
        controller.enqueue(Uint8Array.from(piece));
      },
    });
    const answer = await put(await plan({ filename: 'big.bin', size: 64 * MiB, lane: 'single' }), body);
    expect(answer.status).toBe(201);
    expect(sha256Of(await fetched(answer.json))).toBe(hash.digest('hex'));
  });

  test('fewer bytes than planned are a narrower transfer', async () => {
    const stored = (await put(await plan({ filename: 'a', size: 100 }), Buffer.from('short'))).json as Uploaded;
    expect((await fetched(stored)).toString()).toBe('short');
  });

  test('the type of the request says nothing: the plan fixed it', async () => {
    const { json } = await put(await planFor(Buffer.from('{}'), { mimeType: 'application/json' }), Buffer.from('{}'), { headers: { 'Content-Type': 'text/html' } });
    expect((await must(json.downloadUrl)).headers.get('content-type')).toBe('application/json');
  });

  test('a plan for multipart lists this lane as its fallback', async () => {
    const planned = await plan({ filename: 'a', size: 3, lane: 'multipart' });
    const { json, status } = await call(`/api/lane/single/${planned.planId}`, { method: 'PUT', headers: { 'X-Transfer-Plan': planned.plan }, body: 'abc' });
    expect(status).toBe(201);
    expect((await fetched(json)).toString()).toBe('abc');
  });
});

describe('PUT /api/lane/single/{planId}, digests', () => {
  const small = Buffer.from('small');
  const large = randomBytes(100_000);
  const other = digestOf(Buffer.from('other'));

  test.each([['small', small], ['large', large]])('a Content-Digest that holds is accepted: %s', async (_case, bytes) => {
    expect((await put(await planFor(bytes), bytes, { headers: { 'Content-Digest': digestOf(bytes) } })).status).toBe(201);
    expect((await put(await planFor(bytes), chunked(bytes), { headers: { 'Content-Digest': `sha-512=:AAAA:, ${digestOf(bytes)}` } })).status).toBe(201);
  });

  test.each([['small', small], ['large', large]])('a Content-Digest that does not hold stores nothing and leaves the plan: %s', async (_case, bytes) => {
    const planned = await planFor(bytes);
    for (const body of [bytes, chunked(bytes)]) {
      expectRefusal(await put(planned, body, { headers: { 'Content-Digest': other } }), 400, 'digest_mismatch');
    }
    expect((await headOf(exchange, `/api/dl/${idsOf(planned).transferId}`)).status).toBe(404);
    expect((await put(planned, bytes, { headers: { 'Content-Digest': digestOf(bytes) } })).status).toBe(201);
  });

  test.each([['small', small], ['large', large]])('bytes must have the digest of their plan: %s', async (_case, bytes) => {
    const planned = await planFor(bytes, { sha256: sha256Of(bytes) });
    const wrong = Buffer.from(bytes);
    wrong[0]! ^= 1;
    for (const body of [wrong, chunked(wrong)]) expectRefusal(await put(planned, body), 400, 'digest_mismatch');
    const stored = await put(planned, chunked(bytes));
    expect(stored.status).toBe(201);
    expect((await must(stored.json.downloadUrl)).headers.get('repr-digest')).toBe(digestOf(bytes));
  });

  test('a Content-Digest that cannot be read is refused, not passed over', async () => {
    expectRefusal(await put(await planFor(small), small, { headers: { 'Content-Digest': 'sha-256=:tooshort:' } }), 400, 'invalid_request', 'Content-Digest');
    expectRefusal(await put(await planFor(large), large, { headers: { 'Content-Digest': `sha-256=${sha256Of(large)}` } }), 400, 'invalid_request', 'Content-Digest');
  });
});

describe('PUT /api/lane/single/{planId}, unruly clients', () => {
  test.each([['small', 20_000], ['large', 3 * MiB]])('one that leaves in the middle of its body leaves nothing, and its plan goes on: %s', async (_case, size) => {
    const bytes = randomBytes(size);
    const planned = await planFor(bytes);
    const { transferId, shareId } = idsOf(planned);
    await leaveMidBody(planned.upload.url, { method: 'PUT', headers: planned.upload.headers, announced: size }, bytes.subarray(0, size / 2));
    expect((await headOf(exchange, `/api/dl/${transferId}`)).status).toBe(404);
    expectRefusal(await call(`/api/share/${shareId}`), 404, 'share_not_found_or_expired');
    expectRefusal(await call(`/api/dl/${transferId}?share_id=${shareId}`), 404, 'share_not_found_or_expired');

    const stored = await put(planned, bytes);
    expect(stored.status).toBe(201);
    expect((await fetched(stored.json)).equals(bytes)).toBe(true);
  });

  test('one that asks before it sends is told to go on', async () => {
    const bytes = randomBytes(50_000);
    const planned = await planFor(bytes);
    const { status, wasTold, text } = await askBeforeSending(planned.upload.url, { method: 'PUT', headers: planned.upload.headers }, bytes);
    expect({ status, wasTold }).toEqual({ status: 201, wasTold: true });
    expect((await fetched(JSON.parse(text))).equals(bytes)).toBe(true);
  });

  test('one that asks with a plan for less is refused before it sends', async () => {
    const planned = await plan({ filename: 'a', size: 10, lane: 'single' });
    const { status, wasTold, text } = await askBeforeSending(planned.upload.url, { method: 'PUT', headers: planned.upload.headers }, randomBytes(MiB));
    expect({ status, wasTold, code: JSON.parse(text).code }).toEqual({ status: 403, wasTold: false, code: 'plan_widened' });
  });
});
