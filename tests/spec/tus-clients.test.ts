/** The TUS clients that people use, over connections that break, to two gateways in turn (interface chapter: TUS adapter). */
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import Uppy from '@uppy/core';
import UppyTus from '@uppy/tus';
import { Upload, type HttpResponse, type UploadOptions } from 'tus-js-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCuttingProxy, type CuttingProxy } from '../support/cutting-proxy.ts';
import type { Uploaded } from '../support/exchange.ts';
import { figure } from '../support/fault-stack.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { startSecondGateway, type SecondGateway } from '../support/second-gateway.ts';
import { toldShare } from '../support/tus-lane.ts';

const MiB = 1_024 ** 2;
const large = figure(64, 1_024) * MiB;
const manyCuts = figure(12, 40);
const boundMiB = 512;

let own: OwnStack;
let second: SecondGateway;
let proxy: CuttingProxy;
let folder: string;
let session: string;

beforeAll(async () => {
  proxy = await startCuttingProxy();
  const env = { BASE_URL: proxy.url };
  own = await startOwnStack({ all: env, gateway: { LEGACY_SURFACES: 'tus' } });
  second = await startSecondGateway(own.stack, { LEGACY_SURFACES: 'tus', RATE_LIMITS: 'off', BASE_URL: proxy.url });
  proxy.targets.push(own.exchange.baseUrl, second.baseUrl);
  folder = await mkdtemp(join(tmpdir(), 'aex-tus-'));
  session = await own.exchange.signIn();
});
afterAll(async () => {
  await second.stop();
  await own.remove();
  await proxy.close();
  await rm(folder, { recursive: true, force: true });
});

type Options = Partial<UploadOptions>;

/** Patience that outlasts every cut of a test. */
const retryDelays = Array.from({ length: 100 }, () => 20);

/** Sends by tus-js-client. Answers what its last answer told. */
async function sendByTus(file: Buffer | ReturnType<typeof createReadStream>, options: Options = {}): Promise<Uploaded> {
  const last = await new Promise<HttpResponse>((resolve, reject) => {
    const { metadata, ...more } = options;
    new Upload(file as Buffer, {
      endpoint: `${proxy.url}/api/tus`, retryDelays, metadata: { filename: 'a.bin', ...metadata }, ...more,
      onError: reject, onSuccess: ({ lastResponse }) => resolve(lastResponse),
    }).start();
  });
  return toldShare({ get: (name: string) => last.getHeader(name) ?? null } as Headers);
}

/** Sends by Uppy. It shows no headers, so what became of the upload is asked with HEAD. */
async function sendByUppy(data: Buffer | ReturnType<typeof createReadStream>, size: number, more: Record<string, unknown> = {}): Promise<Uploaded> {
  const uppy = new Uppy().use(UppyTus, { endpoint: `${proxy.url}/api/tus`, retryDelays, limit: 2, ...more });
  uppy.addFile({ name: 'u.bin', type: 'application/x-uppy', source: 'test', data: data as never, meta: { ttl: '900' }, ...{ size } });
  const result = await uppy.upload();
  expect(result!.failed).toEqual([]);
  const { headers } = await fetch(result!.successful![0]!.uploadURL!, { method: 'HEAD', headers: { 'tus-resumable': '1.0.0' } });
  uppy.destroy();
  return toldShare(headers);
}

async function digestOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of stream) hash.update(bytes);
  return hash.digest('hex');
}

async function fetchedDigest({ downloadUrl }: Uploaded): Promise<string> {
  return digestOf((await fetch(downloadUrl)).body!);
}

/** A file on disk whose every MiB is another. */
async function largeFile(): Promise<string> {
  const path = join(folder, `large-${randomInt(1e9)}`);
  const file = await open(path, 'w');
  const block = randomBytes(MiB);
  for (let at = 0; at < large; at += MiB) {
    block.writeBigUInt64BE(BigInt(at));
    await file.write(block);
  }
  await file.close();
  return path;
}

const budgets = (count: number, most: number) => Array.from({ length: count }, () => randomInt(Math.ceil(most)));

describe('tus-js-client', () => {
  test.each([0, 1, MiB - 1, MiB, MiB + 1, 3 * MiB])('%i bytes in chunks of 1 MiB become the same bytes', async (size) => {
    const bytes = randomBytes(size);
    proxy.cutAfter();
    for (const options of [{}, { uploadDataDuringCreation: true }, ...(size > 0 ? [{ chunkSize: 70_000 }] : [])]) {
      const sent = await sendByTus(bytes, { chunkSize: MiB, ...options });
      expect((await own.exchange.must(sent.downloadUrl)).bytes.equals(bytes)).toBe(true);
    }
  });

  test.each([['as one request', {}], ['in chunks', { chunkSize: 300_000 }], ['beginning with the creation', { uploadDataDuringCreation: true }]] as [string, Options][])(
    '%s, connections that break at any byte cost nothing but time', async (_title, options) => {
      const bytes = randomBytes(3 * MiB);
      const before = proxy.cuts();
      // The first bytes of a connection are a request's head, and the last ones an answer that is lost.
      proxy.cutAfter(10, 700, ...budgets(manyCuts, MiB), 3 * MiB + 700);
      const sent = await sendByTus(bytes, { ...options, metadata: { ttl: '600', max_uses: '1' } });
      expect(proxy.cuts()).toBeGreaterThan(before + 2);
      proxy.cutAfter();
      expect((await own.exchange.must(`/api/share/${sent.shareId}`)).json).toMatchObject({ filename: 'a.bin', size: bytes.length, policy: { maxUses: 1 } });
      expect((await own.exchange.must(sent.downloadUrl)).bytes.equals(bytes)).toBe(true);
      expect((await own.exchange.must(`/api/dl/${sent.id}`, { method: 'DELETE', headers: { 'x-delete-token': sent.deleteToken } })).json.deleted).toBe(true);
    });

  test('a stream whose length nobody knows', async () => {
    const path = join(folder, 'deferred');
    const bytes = randomBytes(2 * MiB + 5);
    await writeFile(path, bytes);
    proxy.cutAfter(...budgets(4, 800_000));
    const sent = await sendByTus(Readable.from(createReadStream(path)) as never, { uploadLengthDeferred: true, chunkSize: 500_000 });
    proxy.cutAfter();
    expect((await own.exchange.must(sent.downloadUrl)).bytes.equals(bytes)).toBe(true);
  });

  test('an upload that was put aside goes on in another client, and one that is ended is gone', async () => {
    const bytes = randomBytes(3 * MiB);
    proxy.cutAfter();
    const headers = { authorization: `Bearer ${session}` };
    const address = await new Promise<string>((resolve, reject) => {
      const first: Upload = new Upload(bytes, {
        endpoint: `${proxy.url}/api/tus`, chunkSize: MiB, headers, metadata: { filename: 'a' }, onError: reject,
        onChunkComplete: () => void first.abort().then(() => resolve(first.url!)),
      });
      first.start();
    });
    const sent = await sendByTus(bytes, { uploadUrl: address, headers });
    expect((await own.exchange.must(sent.downloadUrl)).bytes.equals(bytes)).toBe(true);

    const begun = await new Promise<string>((resolve, reject) => {
      const other: Upload = new Upload(bytes, { endpoint: `${proxy.url}/api/tus`, chunkSize: MiB, headers, onError: reject, onChunkComplete: () => void other.abort(true).then(() => resolve(other.url ?? '')) });
      other.start();
    });
    const [aborted] = await own.exchange.events(session, { eventType: 'upload.aborted' });
    expect(begun).toContain(aborted!['data'] && (aborted!['data'] as { uploadId: string }).uploadId);
  });

  test(`${large / MiB} MiB over ${manyCuts} connections that break`, { timeout: 900_000 }, async () => {
    const path = await largeFile();
    const expected = await digestOf(createReadStream(path));
    proxy.cutAfter(...budgets(manyCuts, large / manyCuts));
    const sent = await sendByTus(createReadStream(path), {});
    proxy.cutAfter();
    expect(await fetchedDigest(sent)).toBe(expected);
    await rm(path);
  });
});

describe('Uppy', () => {
  test.each([0, 1, 3 * MiB])('%i bytes with the names that it gives them', async (size) => {
    const bytes = randomBytes(size);
    proxy.cutAfter();
    const sent = await sendByUppy(bytes, size);
    expect((await own.exchange.must(`/api/share/${sent.shareId}`)).json).toMatchObject({ filename: 'u.bin', mimeType: 'application/x-uppy', size });
    expect((await own.exchange.must(sent.downloadUrl)).bytes.equals(bytes)).toBe(true);
  });

  test(`${large / MiB} MiB over ${manyCuts} connections that break`, { timeout: 900_000 }, async () => {
    const path = await largeFile();
    const expected = await digestOf(createReadStream(path));
    proxy.cutAfter(...budgets(manyCuts, large / manyCuts));
    const sent = await sendByUppy(createReadStream(path), large, { chunkSize: 32 * MiB });
    proxy.cutAfter();
    expect(await fetchedDigest(sent)).toBe(expected);
    await rm(path);
  });
});

test.runIf(process.platform === 'linux')('the gateway that took all of it has stayed small', async () => {
  const status = await readFile(`/proc/${own.stack.services['gateway']!.pid}/status`, 'utf8');
  const peakMiB = Number(/VmHWM:\s+(\d+)/.exec(status)![1]) / 1_024;
  process.stdout.write(`the gateway took at most ${Math.round(peakMiB)} MiB\n`);
  expect(peakMiB).toBeLessThan(boundMiB);
});
