/** The direct lane: parts go from the client straight to the object store (interface chapter: Transfer plan and creation). */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Agent, Uploaded } from '../support/exchange.ts';
import { folderLane } from '../support/folder-lane.ts';
import { multipartLane, partsOf, smallestPart } from '../support/multipart-lane.ts';
import { noObjectStore, objectStoreGiven, storeSettings } from '../support/object-store.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { digestOf, idsOf, sha256Of } from '../support/planned.ts';
import { readZip } from '../support/read-zip.ts';
import { expectRefusal } from '../support/refusals.ts';

interface DirectPart {
  readonly partNumber: number;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly size: number;
}

const store = objectStoreGiven();

if (!store) test.skip(`POST /api/upload/multipart/direct-urls and the direct lane: ${noObjectStore}`, () => undefined);

describe.runIf(store)('the direct lane', () => {
  let own: OwnStack;
  let session: string;
  let agent: Agent;
  let lane: ReturnType<typeof multipartLane>;
  beforeAll(async () => {
    own = await startOwnStack({ policy: { DIRECT_LANE: 'on' }, storage: { ...storeSettings(store!), DIRECT_LANE: 'on' } });
    session = await own.exchange.signIn();
    agent = await own.exchange.makeAgent(session);
    lane = multipartLane(own.exchange);
  });
  afterAll(async () => own?.remove());

  const send = async ({ url, headers }: DirectPart, bytes: Uint8Array) => {
    const response = await fetch(url, { method: 'PUT', headers, body: new Uint8Array(bytes) });
    await response.arrayBuffer();
    return { status: response.status, etag: response.headers.get('etag')! };
  };

  async function begin(size: number, fields: Record<string, unknown> = {}) {
    const planned = await own.exchange.plan({ filename: 'direct.bin', size, lane: 'direct', partSize: smallestPart, ...fields }, session);
    const speaker = { plan: planned.plan };
    const { json } = await lane.init({ filename: 'direct.bin', size }, speaker);
    return { planned, speaker, uploadId: json.uploadId as string, direct: json.direct as { parts: DirectPart[]; expiresAt: string; next?: number }, begun: json };
  }

  async function sent(parts: readonly Buffer[], fields: Record<string, unknown> = {}) {
    const upload = await begin(parts.reduce((sum, { length }) => sum + length, 0), fields);
    const etags = await Promise.all(upload.direct.parts.map(async (part, index) => ({ partNumber: part.partNumber, etag: (await send(part, parts[index]!)).etag })));
    return { ...upload, etags };
  }

  test('is planned when it is asked for, and falls back to multipart', async () => {
    const planned = await own.exchange.plan({ filename: 'a', size: 20, lane: 'direct' });
    expect(planned).toMatchObject({
      lane: 'direct', geometry: { partCount: 1 }, fallback: [{ lane: 'multipart', when: expect.any(String) }],
      upload: { method: 'POST', url: `${own.exchange.baseUrl}/api/upload/multipart/init`, headers: { 'X-Transfer-Plan': planned.plan } },
    });
    expectRefusal(await own.exchange.call('/api/transfer-plan', { json: { filename: 'a', lane: 'direct' } }), 400, 'invalid_request', 'size');
  });

  test('gives an address for each part, made for exactly its bytes', async () => {
    const { direct, begun } = await begin(smallestPart + 7);
    expect(begun).toMatchObject({ state: 'initialized', partCount: 2 });
    expect(direct.parts.map(({ partNumber, size }) => ({ partNumber, size }))).toEqual([{ partNumber: 1, size: smallestPart }, { partNumber: 2, size: 7 }]);
    expect(direct).not.toHaveProperty('next');
    expect(Date.parse(direct.expiresAt)).toBeLessThanOrEqual(Date.parse(begun.expiresAt));
    for (const { url, size } of direct.parts) {
      const { searchParams } = new URL(url);
      expect(searchParams.get('X-Amz-SignedHeaders')).toBe('content-length;host');
      expect(Number(searchParams.get('X-Amz-Expires'))).toBeLessThanOrEqual(3_600);
      expect(await (await fetch(url)).text()).not.toHaveLength(size);
    }
    expect((await send(direct.parts[1]!, Buffer.alloc(8))).status).toBe(403);
    expect((await send(direct.parts[1]!, Buffer.alloc(7))).status).toBe(200);
  });

  test('the parts become an ordinary share, with the digest that was promised', async () => {
    const parts = partsOf(3, 99);
    const whole = Buffer.concat(parts);
    const { uploadId, speaker, etags, planned } = await sent(parts, { sha256: sha256Of(whole), maxUses: 3 });
    expect((await lane.status(uploadId, speaker)).json).toMatchObject({ receivedBytes: whole.length, parts: etags.map(({ partNumber, etag }) => ({ partNumber, etag: etag.replaceAll('"', '') })) });
    const completed = await lane.complete(uploadId, { parts: etags }, speaker);
    expect(completed.status).toBe(201);
    expect((await lane.complete(uploadId, { parts: etags }, speaker)).json).toEqual(completed.json);
    const { downloadUrl, id, shareId } = completed.json as Uploaded;
    expect({ id, shareId }).toEqual({ id: idsOf(planned).transferId, shareId: idsOf(planned).shareId });
    const fetched = await own.exchange.must(downloadUrl);
    expect(fetched.bytes.equals(whole)).toBe(true);
    expect(fetched.headers.get('repr-digest')).toBe(digestOf(whole));
    expect((await own.exchange.must(downloadUrl, { headers: { range: `bytes=${smallestPart - 2}-${smallestPart + 1}` } })).bytes.equals(whole.subarray(smallestPart - 2, smallestPart + 2))).toBe(true);
    expect((await lane.status(uploadId, speaker)).json).toMatchObject({ state: 'completed', receivedBytes: whole.length });
    const events = await own.exchange.events(session, { targetId: id }, 3);
    expect(events.filter(({ eventType }) => /^(upload|transfer)\.(initialized|completed|stored)$/.test(eventType as string)).map(({ data }) => (data as { lane: string }).lane)).toEqual(['direct', 'direct', 'direct']);
  });

  test('what has not arrived is named, and what is not stored as the client says', async () => {
    const parts = partsOf(2, 10);
    const { uploadId, speaker, direct } = await begin(smallestPart + 10);
    const first = await send(direct.parts[0]!, parts[0]!);
    const missing = await lane.complete(uploadId, {}, speaker);
    expectRefusal(missing, 400, 'invalid_request', 'parts');
    expect(missing.json.detail).toMatch(/part 2\b/);
    const second = await send(direct.parts[1]!, parts[1]!);
    const listed = [{ partNumber: 1, etag: second.etag }, { partNumber: 2, etag: second.etag }];
    expectRefusal(await lane.complete(uploadId, { parts: listed }, speaker), 400, 'invalid_request', 'parts.0');
    expect((await lane.status(uploadId, speaker)).json.state).toBe('initialized');
    expect((await lane.complete(uploadId, { parts: [{ partNumber: 1, etag: first.etag }, listed[1]] }, speaker)).status).toBe(201);
  });

  test('a part sent again replaces the part, and bytes without the promised digest are not completed', async () => {
    const parts = partsOf(2, 10);
    const { uploadId, speaker, direct } = await sent([parts[0]!, Buffer.from('0123456789')], { sha256: sha256Of(Buffer.concat(parts)) });
    const before = await lane.status(uploadId, speaker);
    await send(direct.parts[1]!, parts[1]!);
    expect((await lane.status(uploadId, speaker)).json.parts[1]).not.toEqual(before.json.parts[1]);
    expect((await lane.complete(uploadId, {}, speaker)).status).toBe(201);

    const other = await sent([parts[0]!, Buffer.from('0123456789')], { sha256: sha256Of(Buffer.concat(parts)) });
    expectRefusal(await lane.complete(other.uploadId, {}, other.speaker), 400, 'digest_mismatch');
    expect((await lane.status(other.uploadId, other.speaker)).json).toMatchObject({ state: 'initialized', receivedBytes: smallestPart + 10 });
    // The store has made its object; what comes now comes by the exchange.
    expectRefusal(await own.exchange.call('/api/upload/multipart/direct-urls', { headers: { 'X-Transfer-Plan': other.speaker.plan }, json: { uploadId: other.uploadId, partNumbers: [2] } }), 409, 'upload_state_conflict');
    expect((await lane.part(other.uploadId, 2, parts[1]!, other.speaker)).status).toBe(200);
    const { json } = await lane.complete(other.uploadId, {}, other.speaker);
    expect((await own.exchange.must(json.downloadUrl)).bytes.equals(Buffer.concat(parts))).toBe(true);
  });

  test('its fallback works: parts sent to the exchange and parts sent to the store make one file', async () => {
    const parts = partsOf(3, 1_234);
    const { uploadId, speaker, direct } = await begin(2 * smallestPart + 1_234);
    const etags = [
      (await lane.part(uploadId, 1, parts[0]!, speaker)).json.etag as string,
      (await send(direct.parts[1]!, parts[1]!)).etag,
      (await lane.part(uploadId, 3, parts[2]!, speaker)).json.etag as string,
    ];
    expectRefusal(await lane.part(uploadId, 3, Buffer.from('short'), speaker), 400, 'part_size_mismatch');
    const { status, json } = await lane.complete(uploadId, { parts: etags.map((etag, index) => ({ partNumber: index + 1, etag })) }, speaker);
    expect(status).toBe(201);
    expect((await own.exchange.must(json.downloadUrl)).bytes.equals(Buffer.concat(parts))).toBe(true);
  });

  test('POST /api/upload/multipart/direct-urls gives more addresses and fresh ones, to the sender alone', async () => {
    const { uploadId, speaker, direct } = await begin(150 * smallestPart);
    expect(direct.parts).toHaveLength(100);
    expect(direct.next).toBe(101);
    const ask = (partNumbers: unknown, plan: string | undefined = speaker.plan) =>
      own.exchange.call('/api/upload/multipart/direct-urls', { headers: plan === undefined ? {} : { 'X-Transfer-Plan': plan }, json: { uploadId, partNumbers } });
    const { status, json } = await ask([101, 150, 101]);
    expect({ status, numbers: json.parts.map(({ partNumber }: DirectPart) => partNumber), uploadId: json.uploadId }).toEqual({ status: 200, numbers: [101, 150], uploadId });
    expect((await send(json.parts[0], randomBytes(smallestPart))).status).toBe(200);
    for (const bad of [[], [0], [10_001], Array.from({ length: 101 }, (_each, index) => index + 1)]) expectRefusal(await ask(bad), 400, 'invalid_request');
    expectRefusal(await ask([151]), 400, 'invalid_request', 'partNumber');
    const other = await own.exchange.plan({ filename: 'direct.bin', size: 10, lane: 'direct' });
    expectRefusal(await ask([1], other.plan), 403, 'plan_mismatch');
    expectRefusal(await own.exchange.call('/api/upload/multipart/direct-urls', { json: { uploadId, partNumbers: [1] } }), 401, 'plan_required');
    await lane.abort(uploadId, speaker);
    expectRefusal(await ask([1]), 409, 'upload_state_conflict');
  });

  test('an aborted upload takes nothing more', async () => {
    const { uploadId, speaker, direct } = await sent(partsOf(1, 10));
    expect((await lane.abort(uploadId, speaker)).json.state).toBe('aborted');
    expectRefusal(await lane.complete(uploadId, {}, speaker), 409, 'upload_state_conflict');
    const end = Date.now() + 30_000;
    let status = 200;
    while (status === 200 && Date.now() < end) ({ status } = await send(direct.parts[0]!, randomBytes(10)));
    expect(status).toBe(404);
  });

  test('an agent share of the direct lane is fetched by grant and from the exchange; no answer has an address of the store', async () => {
    const parts = partsOf(2, 5);
    const { uploadId, speaker, etags } = await sent(parts, { authMode: 'agent', allowedAgentIds: [agent.agentId] });
    const { json } = await lane.complete(uploadId, { parts: etags }, speaker);
    const { id, shareId, shareUrl, downloadUrl } = json as Uploaded;
    const grant = await own.exchange.grant(shareId, agent.key);
    const asked = [
      await own.exchange.must(`/api/share/${shareId}`, { bearer: agent.key }), await own.exchange.call(downloadUrl), await own.exchange.must(shareUrl),
      await own.exchange.must(`/api/dl/${id}`, { headers: { 'x-access-grant': grant } }), await own.exchange.must('/api/shares', { bearer: session }),
      await own.exchange.must('/api/audit?limit=100', { bearer: session }), await lane.status(uploadId, speaker), await lane.abort(uploadId, speaker),
      await own.exchange.call('/openapi.json'), await own.exchange.call('/readyz'),
    ];
    expect(asked[3]!.bytes.equals(Buffer.concat(parts))).toBe(true);
    for (const answer of asked) {
      expect(answer.status).not.toBe(302);
      expect(`${answer.text} ${JSON.stringify([...answer.headers])}`).not.toContain(store!.endpoint);
    }
  });

  test('files of a folder go to the store themselves where their sender asks for it, and upload-direct-complete makes them ready', async () => {
    const folders = folderLane(own.exchange);
    const folder = await folders.create({ maxUses: 3 }, session);
    const content = randomBytes(100_000);
    const { json: declared } = await folders.declare(folder, { path: 'a/direct.bin', size: content.length, lane: 'direct' });
    expect(declared).toMatchObject({ partCount: 1, direct: { parts: [{ partNumber: 1, size: content.length }] } });
    const { fileId, uploadId, direct } = declared as { fileId: string; uploadId: string; direct: { parts: DirectPart[] } };
    const more = await own.exchange.must('/api/upload/multipart/direct-urls', { json: { uploadId, partNumbers: [1] }, headers: { 'x-delete-token': folder.deleteToken } });
    expect(more.json.parts).toHaveLength(1);
    expect((await send(direct.parts[0]!, content)).status).toBe(200);
    const command = { fileId, uploadId, operationId: 'direct' };
    const accepted = await own.exchange.call(`/api/folder/${folder.folderId}/upload-direct-complete`, { json: command, headers: { 'x-delete-token': folder.deleteToken } });
    expect(accepted.status).toBe(202);
    expect(await folders.untilDone(folder, 'direct')).toMatchObject({ state: 'ready', fileId });
    // The exchange has not seen the bytes: their checksum is found while the archive is written.
    expect(readZip((await own.exchange.must(folder.zipUrl)).bytes).map(({ name, bytes }) => [name, sha256Of(bytes)])).toEqual([['a/direct.bin', sha256Of(content)]]);
    expect((await own.exchange.must(`/api/dl/${fileId}?share_id=${folder.shareId}`)).bytes.equals(content)).toBe(true);
  });

  test('a file of a folder whose parts did not come is not completed', async () => {
    const folders = folderLane(own.exchange);
    const folder = await folders.create({}, session);
    const { json: { fileId, uploadId } } = await folders.declare(folder, { path: 'absent.bin', size: 10, lane: 'direct' });
    await own.exchange.must(`/api/folder/${folder.folderId}/upload-direct-complete`, { json: { fileId, uploadId, operationId: 'absent' }, headers: { 'x-delete-token': folder.deleteToken } });
    expect(await folders.untilDone(folder, 'absent')).toMatchObject({ state: 'failed', error: { code: 'invalid_request' } });
  });
});
