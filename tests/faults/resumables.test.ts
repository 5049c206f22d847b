/** Resumable uploads under faults: whatever is killed in the middle, each goes on to its end, and nothing is left behind. */
import { randomBytes } from 'node:crypto';
import { Upload } from 'tus-js-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt, type Exchange } from '../support/exchange.ts';
import { eventually, figure, sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { compareBlobs } from '../support/reconcile-audit.ts';
import { metadataOf, toldShare, tusLane } from '../support/tus-lane.ts';

const MiB = 1_024 ** 2;
const rounds = figure(1, 20);
const sendersAtOnce = 4;

let stack: FaultStack;
let end: () => Promise<void>;
let exchange: Exchange;
let retries = 0;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack({ gateway: { LEGACY_SURFACES: 'upload,tus' } }));
  exchange = exchangeAt(stack.baseUrl, stack.owner);
});
afterAll(async () => end());

/** Sends slowly enough to be met by every fault, and as often as it takes. */
function send(bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    new Upload(bytes, {
      endpoint: `${stack.baseUrl}/api/tus`, chunkSize: MiB / 2, metadata: { filename: 'a.bin' }, retryDelays: Array.from({ length: 600 }, () => 100),
      // A service that is away is no reason to give up, whatever the status.
      onShouldRetry() {
        retries += 1;
        return true;
      },
      onError: reject,
      onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader('X-Download-Url')!),
    }).start();
  });
}

async function killAndStart(name: string): Promise<void> {
  await stack.services[name]!.kill('SIGKILL');
  await sleep(300);
  await stack.services[name]!.start();
}

async function faults(): Promise<void> {
  for (const name of ['storage', 'gateway', 'policy']) await killAndStart(name);
  await stack.nats.stop('SIGKILL');
  await stack.nats.start();
  await stack.postgres.restart('immediate');
}

describe('resumable uploads under faults', () => {
  test('every service, NATS and PostgreSQL killed in the middle: every upload ends whole', { timeout: 1_800_000 }, async () => {
    for (let round = 0; round < rounds; round += 1) {
      let areFaultsOver = false;
      const senders = Array.from({ length: sendersAtOnce }, async () => {
        const sent: [Buffer, string][] = [];
        do {
          const bytes = randomBytes(8 * MiB);
          sent.push([bytes, await send(bytes)]);
        } while (!areFaultsOver);
        return sent;
      });
      await Promise.race([faults(), Promise.all(senders)]);
      areFaultsOver = true;
      for (const [bytes, address] of (await Promise.all(senders)).flat()) {
        const fetched = await eventually(() => exchange.call(address), ({ status }) => status === 200, 20_000);
        expect(fetched.bytes.equals(bytes)).toBe(true);
      }
    }
    expect(retries).toBeGreaterThan(0);
    expect(stack.crashes).toEqual([]);
  });

  test('what is wholly stored while no share can be made is finished by whoever asks for it', async () => {
    const lane = tusLane(exchange);
    const address = await lane.begin(5);
    await lane.patch(address, 0, Buffer.from('hel'));
    // The policy service is away: the last bytes are stored, and the share cannot be made.
    await stack.services['policy']!.kill('SIGKILL');
    const last = await lane.patch(address, 3, Buffer.from('lo'));
    expect(last.status).toBe(503);
    await stack.services['policy']!.start();
    const { headers } = await eventually(() => lane.head(address), ({ status }) => status === 200, 20_000);
    expect(headers.get('upload-offset')).toBe('5');
    expect((await exchange.must(toldShare(headers).downloadUrl)).text).toBe('hello');
  });

  test('what was begun and ended, or given up in a form, leaves no file behind', async () => {
    const lane = tusLane(exchange);
    const answer = await lane.create({ 'upload-length': String(4 * MiB), 'upload-metadata': metadataOf({ filename: 'a' }) }, {}, randomBytes(3 * MiB));
    await lane.end(answer.headers.get('location')!);
    const form = new FormData();
    form.append('file', new Blob([randomBytes(MiB)]), 'a.bin');
    form.append('ttl', '1');
    expect((await exchange.call('/api/upload', { body: form })).status).toBe(400);
    expect(await compareBlobs(stack)).toEqual({ orphans: [], missing: [] });
  });
});
