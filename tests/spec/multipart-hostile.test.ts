/** The multipart lane against clients that are wrong, hostile or racing (interface chapter: Native multipart lane). */
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Answer } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { multipartLane, partsOf, smallestPart } from '../support/multipart-lane.ts';
import { digestOf, sha256Of } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';
import { askBeforeSending, leaveMidBody } from '../support/unruly-client.ts';

const exchange = sharedExchange();
const { call, must } = exchange;
const lane = multipartLane(exchange);
const abc = Buffer.from('abc');
let session: string;

beforeAll(async () => { session = await exchange.signIn(); });

/** An upload of one small part that has arrived. */
async function arrived() {
  const begun = await lane.begin(3);
  const { etag } = (await lane.part(begun.uploadId, 1, abc)).json as { etag: string };
  return { ...begun, etag };
}

const everyCall = (uploadId: string, speaker = {}) => [
  lane.part(uploadId, 1, abc, speaker), lane.complete(uploadId, {}, speaker), lane.abort(uploadId, speaker), lane.status(uploadId, speaker),
];

describe('POST /api/upload/multipart/part, wrong parts', () => {
  test.each(['0', '-1', '10001', '3', '1.5', 'abc', '', '1e0', '99999999999999999999', '1&partNumber=2'])('part number %s is refused by name', async (number) => {
    const { uploadId } = await lane.begin(smallestPart + 1);
    expectRefusal(await lane.part(uploadId, number, abc), 400, 'invalid_request', 'partNumber');
    expect((await lane.status(uploadId)).json).toMatchObject({ state: 'initialized', receivedBytes: 0 });
  });

  test('a part needs its upload and its number, and nothing unknown', async () => {
    expectRefusal(await call('/api/upload/multipart/part', { body: 'abc' }), 400, 'invalid_request', 'uploadId', 'partNumber');
    expectRefusal(await call('/api/upload/multipart/part?uploadId=mpu_x&partNumber=1&size=3', { body: 'abc' }), 400, 'invalid_request', 'size');
  });

  test('a part must have its size, announced or not', async () => {
    const { uploadId } = await lane.begin(smallestPart + 3);
    const form = (bytes: Uint8Array) => {
      const body = new FormData();
      body.append('uploadId', uploadId);
      body.append('partNumber', '2');
      body.append('file', new Blob([new Uint8Array(bytes)]), 'p');
      return call('/api/upload/multipart/part', { body });
    };
    for (const bytes of [Buffer.alloc(0), Buffer.from('ab'), Buffer.from('abcd')]) {
      expectRefusal(await lane.part(uploadId, 2, bytes), 400, 'part_size_mismatch');
      expectRefusal(await form(bytes), 400, 'part_size_mismatch');
    }
    expectRefusal(await lane.part(uploadId, 1, Buffer.alloc(smallestPart - 1)), 400, 'part_size_mismatch');
    expectRefusal(await lane.part(uploadId, 1, Buffer.alloc(smallestPart + 1)), 400, 'part_size_mismatch');
    expect((await lane.status(uploadId)).json.receivedBytes).toBe(0);
    expect((await form(abc)).status).toBe(200);
  });

  test('a part that does not have its Content-Digest is not recorded', async () => {
    const { uploadId } = await lane.begin(3);
    expectRefusal(await lane.part(uploadId, 1, abc, { headers: { 'Content-Digest': digestOf(Buffer.from('xyz')) } }), 400, 'digest_mismatch');
    expect((await lane.status(uploadId)).json.receivedBytes).toBe(0);
    expect((await lane.part(uploadId, 1, abc)).status).toBe(200);
  });

  test('a refused replacement leaves the part as it was', async () => {
    const { uploadId, etag } = await arrived();
    await lane.part(uploadId, 1, Buffer.from('xyz'), { headers: { 'Content-Digest': digestOf(abc) } });
    await lane.part(uploadId, 1, Buffer.from('toolong'));
    const { json } = await lane.complete(uploadId, { parts: [{ partNumber: 1, etag }] });
    expect((await must(json.downloadUrl)).text).toBe('abc');
  });

  test('a client that leaves in the middle of a part may send it again', async () => {
    const parts = partsOf(2, 1_000_000);
    const { uploadId } = await lane.begin(smallestPart + 1_000_000);
    for (const [index, bytes] of parts.entries()) {
      const junk = randomBytes(bytes.length / 2);
      await leaveMidBody(`${exchange.baseUrl}/api/upload/multipart/part?uploadId=${uploadId}&partNumber=${index + 1}`, { method: 'POST', announced: bytes.length }, junk);
      expect((await lane.status(uploadId)).json.parts).toHaveLength(index);
      expect((await lane.part(uploadId, index + 1, bytes)).status).toBe(200);
    }
    const { json } = await lane.complete(uploadId);
    expect((await must(json.downloadUrl)).bytes.equals(Buffer.concat(parts))).toBe(true);
  });

  test('a client that leaves while it replaces a part leaves the part as it was', async () => {
    const [bytes] = partsOf(1, 1_000_000) as [Buffer];
    const { uploadId } = await lane.begin(bytes.length);
    await lane.part(uploadId, 1, bytes);
    await leaveMidBody(`${exchange.baseUrl}/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`, { method: 'POST', announced: bytes.length }, randomBytes(500_000));
    const { json } = await lane.complete(uploadId);
    expect((await must(json.downloadUrl)).bytes.equals(bytes)).toBe(true);
  });
});

describe('POST /api/upload/multipart/complete, wrong completions', () => {
  test('a part that is missing is named', async () => {
    const { uploadId } = await lane.begin(smallestPart + 3);
    await lane.part(uploadId, 2, abc);
    const answer = await lane.complete(uploadId);
    expectRefusal(answer, 400, 'invalid_request', 'parts');
    expect(answer.json.detail).toMatch(/part 1\b/);
    expect((await lane.status(uploadId)).json.state).toBe('initialized');
  });

  test('the listed parts must be those that are stored, each once', async () => {
    const { uploadId, etag } = await arrived();
    const listed = (...parts: unknown[]) => lane.complete(uploadId, { parts });
    expectRefusal(await listed({ partNumber: 1, etag: '0'.repeat(32) }), 400, 'invalid_request', 'parts.0');
    expectRefusal(await listed(), 400, 'invalid_request', 'parts');
    expectRefusal(await listed({ partNumber: 1, etag }, { partNumber: 1, etag }), 400, 'invalid_request', 'parts');
    expectRefusal(await listed({ partNumber: 1, etag }, { partNumber: 2, etag }), 400, 'invalid_request', 'parts', 'parts.1');
    for (const partNumber of [0, -1, 10_001, '1']) expectRefusal(await listed({ partNumber, etag }), 400, 'invalid_request', 'parts.0.partNumber');
    expectRefusal(await listed({ partNumber: 1, etag: 'x' }), 400, 'invalid_request', 'parts.0.etag');
    expect((await listed({ partNumber: 1, etag })).status).toBe(201);
  });

  test('the bytes must have the digest that was promised at the beginning or at the end', async () => {
    const { uploadId } = await arrived();
    expectRefusal(await lane.complete(uploadId, { sha256: sha256Of(Buffer.from('xyz')) }), 400, 'digest_mismatch');
    expectRefusal(await lane.complete(uploadId, { sha256: 'x' }), 400, 'invalid_request', 'sha256');
    expect((await lane.complete(uploadId, { sha256: sha256Of(abc) })).status).toBe(201);

    const parts = partsOf(2, 10);
    const promised = await lane.begin(smallestPart + 10, { sha256: sha256Of(Buffer.concat(parts)) });
    await lane.sendAll(promised.uploadId, [parts[0]!, Buffer.from('0123456789')]);
    expectRefusal(await lane.complete(promised.uploadId), 400, 'digest_mismatch');
    await lane.part(promised.uploadId, 2, parts[1]!);
    const { json } = await lane.complete(promised.uploadId);
    expect((await must(json.downloadUrl)).headers.get('repr-digest')).toBe(digestOf(Buffer.concat(parts)));
  });

  test('unknown fields are refused by name', async () => {
    const { uploadId } = await arrived();
    expectRefusal(await lane.complete(uploadId, { partCount: 1 }), 400, 'invalid_request', 'partCount');
    expectRefusal(await call('/api/upload/multipart/abort', { json: { uploadId, reason: 'x' } }), 400, 'invalid_request', 'reason');
  });
});

describe('a multipart upload that ended', () => {
  test('completed, it takes no part and no abort', async () => {
    const { uploadId } = await arrived();
    const { json } = await lane.complete(uploadId);
    expectRefusal(await lane.part(uploadId, 1, Buffer.from('xyz')), 409, 'upload_state_conflict');
    expectRefusal(await lane.abort(uploadId), 409, 'upload_state_conflict');
    expect((await must(json.downloadUrl)).text).toBe('abc');
  });

  test('aborted, it takes no part and no completion', async () => {
    const { uploadId, transferId } = await arrived();
    await lane.abort(uploadId);
    expectRefusal(await lane.part(uploadId, 1, abc), 409, 'upload_state_conflict');
    expectRefusal(await lane.complete(uploadId), 409, 'upload_state_conflict');
    expect((await headOf(exchange, `/api/dl/${transferId}`)).status).toBe(404);
  });

  test('its transfer deleted, completing again brings nothing back', async () => {
    const { uploadId } = await arrived();
    const { json } = await lane.complete(uploadId);
    await must(`/api/dl/${json.id}`, { method: 'DELETE', headers: { 'X-Delete-Token': json.deleteToken } });
    await lane.complete(uploadId);
    expectRefusal(await call(json.downloadUrl), 404, 'share_not_found_or_expired');
    expectRefusal(await call(`/api/share/${json.shareId}`), 404, 'share_not_found_or_expired');
  });
});

describe('a multipart upload that nobody knows', () => {
  test.each(['mpu_doesnotexist', 'multipart_x', 'multipart_doesnotexist', `mpu_${'x'.repeat(60)}`])('%s is not found, whatever is asked of it', async (uploadId) => {
    for (const answer of await Promise.all(everyCall(uploadId))) expectRefusal(answer, 404, 'multipart_upload_not_found');
    for (const answer of await Promise.all(everyCall(uploadId, { bearer: session }))) expectRefusal(answer, 404, 'multipart_upload_not_found');
  });

  test.each(['trf_doesnotexist', 'mpu_', 'mpu_a-b', 'x', 'mpu_%00', '..%2f'])('%s is no upload id', async (uploadId) => {
    for (const answer of await Promise.all(everyCall(uploadId))) expectRefusal(answer, 400, 'invalid_request', 'uploadId');
  });
});

describe('a multipart upload in a race', () => {
  const whole = (answer: Answer, ...possible: Buffer[]) => expect(possible.some((bytes) => bytes.equals(answer.bytes))).toBe(true);

  test.each([1, 2, 3, 4, 5])('complete and abort: exactly one of them wins (%i)', async () => {
    const { uploadId, transferId } = await arrived();
    const [completed, aborted] = await Promise.all([lane.complete(uploadId), lane.abort(uploadId)]);
    const { state } = (await lane.status(uploadId)).json;
    if (completed.status === 201) {
      expectRefusal(aborted, 409, 'upload_state_conflict');
      expect(state).toBe('completed');
      expect((await must(completed.json.downloadUrl)).text).toBe('abc');
    } else {
      expectRefusal(completed, 409, 'upload_state_conflict');
      expect({ status: aborted.status, state }).toEqual({ status: 200, state: 'aborted' });
      expect((await headOf(exchange, `/api/dl/${transferId}`)).status).toBe(404);
    }
  });

  test.each([1, 2, 3])('complete and a replaced part: the file holds the old part or the new one, never a mixture (%i)', async () => {
    const [first, second, other] = [...partsOf(2), randomBytes(smallestPart)] as [Buffer, Buffer, Buffer];
    const { uploadId } = await lane.begin(2 * smallestPart);
    await lane.sendAll(uploadId, [first, second]);
    const [replaced, completed] = await Promise.all([lane.part(uploadId, 1, other), lane.complete(uploadId)]);
    expect(completed.status).toBe(201);
    const answer = await must(completed.json.downloadUrl);
    if (replaced.status === 200) whole(answer, Buffer.concat([other, second]));
    else {
      expectRefusal(replaced, 409, 'upload_state_conflict');
      whole(answer, Buffer.concat([first, second]));
    }
    expect((await must(completed.json.downloadUrl)).bytes.equals(answer.bytes)).toBe(true);
  });

  test.each([0, 2, 4, 6, 8])('a completion that reads for long does not pass over a part that is replaced meanwhile, %i ms after it began', async (milliseconds) => {
    const [body, tail, other] = [partsOf(4), Buffer.from('tail'), Buffer.from('more')];
    const { uploadId } = await lane.begin(4 * smallestPart + tail.length);
    await lane.sendAll(uploadId, [...body, tail]);
    let completing!: Promise<Answer>;
    const replaced = await askBeforeSending(`${exchange.baseUrl}/api/upload/multipart/part?uploadId=${uploadId}&partNumber=5`, { method: 'POST' }, other, async () => {
      completing = lane.complete(uploadId, { sha256: sha256Of(Buffer.concat([...body, tail])) });
      await new Promise((resolve) => setTimeout(resolve, milliseconds));
    });
    const completed = await completing;
    // The promise was of the first tail: it is kept only when the other one was not accepted.
    expect([[200, 400], [409, 201]]).toContainEqual([replaced.status, completed.status]);
    const { json } = replaced.status === 200 ? await lane.complete(uploadId) : completed;
    whole(await must(json.downloadUrl), Buffer.concat([...body, replaced.status === 200 ? other : tail]));
  });

  test('one part number sent eight times at once is one of the eight', async () => {
    const contents = Array.from({ length: 8 }, () => randomBytes(300_000));
    const { uploadId } = await lane.begin(300_000);
    const answers = await Promise.all(contents.map((bytes) => lane.part(uploadId, 1, bytes)));
    expect(answers.map(({ status }) => status)).toEqual(contents.map(() => 200));
    const [{ etag }] = (await lane.status(uploadId)).json.parts;
    const { json } = await lane.complete(uploadId, { parts: [{ partNumber: 1, etag }] });
    const stored = (await must(json.downloadUrl)).bytes;
    expect(answers.find((answer) => answer.json.etag === etag)!.json.sha256).toBe(sha256Of(stored));
    whole(await must(json.downloadUrl), ...contents);
  });
});
