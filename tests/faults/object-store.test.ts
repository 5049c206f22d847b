/** The object store goes away, falls silent and cuts connections: clear errors, nothing half-visible, nothing left behind. */
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt, type Answer, type Exchange, type Uploaded } from '../support/exchange.ts';
import { eventually, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.ts';
import { headOf } from '../support/head.ts';
import { MiB, multipartLane, partsOf, smallestPart } from '../support/multipart-lane.ts';
import { noObjectStore, objectStoreGiven, storeSettings } from '../support/object-store.ts';
import { chunked, idsOf, sha256Of, singleLane } from '../support/planned.ts';

const store = objectStoreGiven();

if (!store) test.skip(`an object store in bad weather: ${noObjectStore}`, () => undefined);

describe.runIf(store)('an object store in bad weather', () => {
  let stack: FaultStack;
  let end: () => Promise<void>;
  let proxy: FaultProxy;
  let exchange: Exchange;
  let lane: ReturnType<typeof multipartLane>;
  let settings: Record<string, string>;
  const made: Uploaded[] = [];

  beforeAll(async () => {
    proxy = await startFaultProxy(store!.endpoint);
    settings = storeSettings(store!, proxy.url);
    ({ stack, end } = await startFaultStack({ storage: { ...settings, BLOB_IDLE_SECONDS: '4' }, policy: { PART_SIZE_MIN_BYTES: String(smallestPart) } }));
    exchange = exchangeAt(stack.baseUrl, stack.owner);
    lane = multipartLane(exchange);
  });
  afterEach(() => proxy.set({ kind: 'fair' }));
  afterAll(async () => {
    await end?.();
    await proxy?.close();
  });

  const keep = (answer: Answer): Uploaded => {
    expect(answer.status, answer.text).toBe(201);
    made.push(answer.json);
    return answer.json;
  };
  const upload = async (bytes: Buffer, fields = {}) => {
    const stored = await exchange.upload(bytes, fields);
    made.push(stored);
    return stored;
  };
  const expectOutage = (answer: Answer) => {
    expect([503, 504], answer.text).toContain(answer.status);
    expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(answer.text).not.toMatch(/x-amz|127\.0\.0\.1/i);
  };

  /** One upload by the single lane that fails, whatever the weather is; its plan then works for the same bytes. */
  async function failsOnce(send: (planned: Awaited<ReturnType<Exchange['plan']>>) => Promise<Answer>): Promise<void> {
    const planned = await exchange.plan({ filename: 'a.bin', lane: 'single' });
    expectOutage(await send(planned));
    const { transferId, shareId } = idsOf(planned);
    expect((await headOf(exchange, `/api/dl/${transferId}`)).status).toBe(404);
    expect((await exchange.call(`/api/share/${shareId}`)).status).toBe(404);
    proxy.set({ kind: 'fair' });
    keep(await send(planned));
  }

  const bytes = randomBytes(3 * MiB);
  const long = randomBytes(12 * MiB);
  const veryLong = randomBytes(48 * MiB);
  const put = (...args: Parameters<ReturnType<typeof singleLane>>) => singleLane(exchange)(...args);

  test.each<[string, Parameters<FaultProxy['set']>[0]]>([
    ['refuses connections', { kind: 'refuse' }],
    ['says nothing', { kind: 'silent' }],
    ['cuts connections in the middle of what it is sent', { kind: 'cutUp', after: MiB }],
    ['cuts connections before it answers', { kind: 'cutDown', after: 0 }],
  ])('a store that %s: uploads are told so, nothing is visible, and afterwards they work', async (_title, weather) => {
    proxy.set(weather);
    await failsOnce((planned) => put(planned, bytes));
    proxy.set(weather);
    await failsOnce((planned) => put(planned, chunked(long, 256 * 1_024)));
  });

  test('small assets need no store', async () => {
    proxy.set({ kind: 'refuse' });
    const stored = await upload(Buffer.from('{"answer":42}'));
    expect((await exchange.must(stored.downloadUrl)).text).toBe('{"answer":42}');
  });

  test('a multipart upload outlives an outage at each of its steps', async () => {
    const parts = partsOf(2, 1_000);
    proxy.set({ kind: 'refuse' });
    expectOutage(await lane.init({ filename: 'a.bin', size: smallestPart + 1_000, partSize: smallestPart }, { headers: { 'Idempotency-Key': 'one' } }));
    proxy.set({ kind: 'fair' });
    const { json: { uploadId, transferId } } = await lane.init({ filename: 'a.bin', size: smallestPart + 1_000, partSize: smallestPart }, { headers: { 'Idempotency-Key': 'one' } });

    proxy.set({ kind: 'cutUp', after: MiB });
    expectOutage(await lane.part(uploadId, 1, parts[0]!));
    expect((await lane.status(uploadId)).json.receivedBytes).toBe(0);
    proxy.set({ kind: 'fair' });
    await lane.sendAll(uploadId, parts);

    // The store may have done it: nobody knows, and nothing may be visible yet.
    proxy.set({ kind: 'cutDown', after: 0 });
    expectOutage(await lane.complete(uploadId));
    expect((await headOf(exchange, `/api/dl/${transferId}`)).status).toBe(404);
    proxy.set({ kind: 'fair' });
    const { downloadUrl } = keep(await lane.complete(uploadId));
    expect((await exchange.must(downloadUrl)).bytes.equals(Buffer.concat(parts))).toBe(true);
  });

  test('storage killed while the store puts an upload together: the sweeper goes on from there, and the sender completes it', async () => {
    const parts = partsOf(2, 1_000);
    const { uploadId } = await lane.begin(smallestPart + 1_000);
    const etags = await lane.sendAll(uploadId, parts);
    proxy.set({ kind: 'silent' });
    const completing = lane.complete(uploadId);
    const stateOf = async () => (await stack.query<{ state: string; sealed: boolean }>(`select state, sealed from storage.uploads where id = '${uploadId}'`))[0]!;
    expect((await eventually(stateOf, ({ state }) => state === 'assembling', 5_000)).state).toBe('assembling');
    expect((await lane.status(uploadId)).json.state).toBe('completing');
    await stack.services['storage']!.kill('SIGKILL');
    expectOutage(await completing);
    proxy.set({ kind: 'fair' });
    await stack.services['storage']!.start();
    expect(await eventually(stateOf, ({ sealed }) => sealed, 20_000)).toEqual({ state: 'initialized', sealed: true });
    const { downloadUrl } = keep(await lane.complete(uploadId, { parts: etags, sha256: sha256Of(Buffer.concat(parts)) }));
    expect((await exchange.must(downloadUrl)).bytes.equals(Buffer.concat(parts))).toBe(true);
  });

  test('a part that the store has lost is named, and the upload goes on', async () => {
    const parts = partsOf(2, 1_000);
    const { uploadId } = await lane.begin(smallestPart + 1_000);
    await lane.sendAll(uploadId, parts);
    // As if another writer had replaced it behind our back.
    await stack.query(`update storage.parts set etag = repeat('0', 32) where upload_id = '${uploadId}' and part_number = 2`);
    const refused = await lane.complete(uploadId);
    expect({ status: refused.status, code: refused.json.code }).toEqual({ status: 409, code: 'upload_state_conflict' });
    expect((await lane.status(uploadId)).json).toMatchObject({ state: 'initialized', parts: [{ partNumber: 1 }] });
    await lane.part(uploadId, 2, parts[1]!);
    const { downloadUrl } = keep(await lane.complete(uploadId));
    expect((await exchange.must(downloadUrl)).bytes.equals(Buffer.concat(parts))).toBe(true);
  });

  /** A download as a client sees it: how many bytes came, and whether it ended as announced. */
  function download(url: string, meanwhile?: () => void): Promise<{ status: number; received: number; whole: boolean }> {
    return new Promise((resolve, reject) => {
      request(new URL(url), (response) => {
        let received = 0;
        response.once('data', () => {
          if (!meanwhile) return;
          response.pause();
          setTimeout(() => { meanwhile(); response.resume(); }, 500);
        });
        response.on('data', (chunk: Buffer) => { received += chunk.length; });
        response.on('error', () => undefined);
        response.on('close', () => resolve({ status: response.statusCode!, received, whole: response.complete }));
      }).on('error', reject).end();
    });
  }

  test('a download that the store breaks off is broken off for the client, too: no short answer counts as whole', async () => {
    const { downloadUrl } = await upload(veryLong);
    const cut = await download(downloadUrl, () => proxy.set({ kind: 'refuse' }));
    expect(cut).toMatchObject({ status: 200, whole: false });
    expect(cut.received).toBeLessThan(veryLong.length);
    proxy.set({ kind: 'fair' });
    expect(await download(downloadUrl)).toEqual({ status: 200, received: veryLong.length, whole: true });
  });

  test('a download goes on over connections that are cut again and again', async () => {
    const { downloadUrl } = await upload(veryLong);
    proxy.set({ kind: 'cutDown', after: 5 * MiB });
    expect((await exchange.must(downloadUrl)).bytes.equals(veryLong)).toBe(true);
  });

  test('a sender that takes longer than files without a writer are kept is not given up', async () => {
    const slowly = async function* pieces() {
      for (let at = 0; at < bytes.length; at += MiB / 2) {
        yield bytes.subarray(at, at + MiB / 2);
        await new Promise((resolve) => setTimeout(resolve, 1_500));
      }
    };
    const send = async (length: Record<string, string>) => {
      const { upload: to } = await exchange.plan({ filename: 'slow.bin', lane: 'single' });
      return new Promise<Answer['json']>((resolve, reject) => {
        const sent = request(new URL(to.url), { method: 'PUT', headers: { ...to.headers, ...length } }, (response) => {
          response.toArray().then((chunks) => resolve(JSON.parse(Buffer.concat(chunks).toString('utf8'))), reject);
        }).on('error', reject);
        Readable.from(slowly()).pipe(sent);
      });
    };
    for (const stored of await Promise.all([send({ 'content-length': String(bytes.length) }), send({ 'transfer-encoding': 'chunked' })])) {
      made.push(stored);
      expect((await exchange.must(stored.downloadUrl)).bytes.equals(bytes)).toBe(true);
    }
  });

  test.each<[string, Parameters<FaultProxy['set']>[0]]>([
    ['refuses connections', { kind: 'refuse' }], ['says nothing', { kind: 'silent' }], ['cuts connections before it answers', { kind: 'cutDown', after: 0 }],
  ])('a fetch from a store that %s is an error and costs no use', async (_title, weather) => {
    const { downloadUrl, shareId } = await upload(bytes, { maxUses: 1 });
    proxy.set(weather);
    expectOutage(await exchange.call(downloadUrl));
    proxy.set({ kind: 'fair' });
    const usesOf = async () => (await stack.query<{ uses: number }>(`select uses::int as uses from policy.shares where id = '${shareId}'`))[0]!.uses;
    expect(await eventually(usesOf, (uses) => uses === 0, 10_000)).toBe(0);
    expect((await exchange.must(downloadUrl)).bytes.equals(bytes)).toBe(true);
  });

  test('no connection is left open when nothing happens', async () => {
    const { downloadUrl } = await upload(long);
    const { hostname, port, pathname, search } = new URL(downloadUrl);
    // Readers that leave in the middle, and a sender that does.
    await Promise.all(Array.from({ length: 10 }, () => new Promise<void>((resolve) => {
      const sent = request({ hostname, port, path: pathname + search }, (response) => response.once('data', () => { sent.destroy(); resolve(); }));
      sent.on('error', () => undefined).end();
    })));
    const planned = await exchange.plan({ filename: 'a', size: long.length, lane: 'single' });
    await new Promise<void>((resolve) => {
      const { pathname: path } = new URL(planned.upload.url);
      const sent = request({ hostname, port, path, method: 'PUT', headers: { ...planned.upload.headers, 'content-length': long.length } });
      sent.on('error', () => resolve()).write(long.subarray(0, 2 * MiB), () => setTimeout(() => { sent.destroy(); resolve(); }, 300));
    });
    // The sweeper speaks to the store while it has something to remove.
    expect(await eventually(() => proxy.open(), (count) => count === 0, 60_000)).toBe(0);
  });

  test('at the end the sweeper leaves no object and no session behind', async () => {
    await lane.begin(2 * smallestPart).then(async ({ uploadId }) => {
      await lane.part(uploadId, 1, partsOf(1)[0]!);
      await lane.abort(uploadId);
    });
    for (const { id, deleteToken } of made) await exchange.must(`/api/dl/${id}`, { method: 'DELETE', headers: { 'X-Delete-Token': deleteToken } });
    // Uploads that an outage at their beginning left open.
    await stack.query(`update storage.uploads set expires_at = now() where state = 'initialized'`);
    const client = new S3Client({ endpoint: store!.endpoint, region: settings['S3_REGION']!, forcePathStyle: true, credentials: { accessKeyId: settings['S3_ACCESS_KEY_ID']!, secretAccessKey: settings['S3_SECRET_ACCESS_KEY']! } });
    const bucket = { Bucket: settings['S3_BUCKET']!, Prefix: settings['S3_PREFIX']! };
    const left = async () => {
      const [{ Contents = [] }, { Uploads = [] }] = await Promise.all([client.send(new ListObjectsV2Command(bucket)), client.send(new ListMultipartUploadsCommand(bucket))]);
      return [...Contents, ...Uploads].map(({ Key }) => Key);
    };
    expect(await eventually(left, (keys) => keys.length === 0, 60_000)).toEqual([]);
    expect(stack.crashes.filter((line) => !line.includes('storage'))).toEqual([]);
    client.destroy();
  });
});
