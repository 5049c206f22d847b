/** Pipes under faults: services and NATS end in the middle, readers are slow, and memory stays bounded. */
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt, type Exchange } from '../support/exchange.ts';
import { figure, sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { follow, makePipe, sendTo, type Reader } from '../support/pipes.ts';
import { compareBlobs } from '../support/reconcile-audit.ts';
import { watchMemory } from '../support/watch-memory.ts';

const MiB = 1_024 ** 2;
const size = figure(768, 8 * 1_024) * MiB;
const slowReaders = figure(50, 200);
/** Well below what goes through. */
const bound = 420 * MiB;
const rounds = figure(2, 20);

let stack: FaultStack;
let end: () => Promise<void>;
let exchange: Exchange;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack());
  exchange = exchangeAt(stack.baseUrl, stack.owner);
});
afterAll(async () => end());

/** The digest of all that a reader gets, and whether that was whole. */
async function digestOf(reader: Reader): Promise<[string, boolean]> {
  const hash = createHash('sha256');
  for (let chunk = await reader.take(MiB); chunk.length > 0; chunk = await reader.take(MiB)) hash.update(chunk);
  return [hash.digest('hex'), (await reader.rest()).isWhole];
}

describe('a pipe under faults', () => {
  const faults: Record<string, () => Promise<void>> = {
    'storage is killed': async () => {
      await stack.services['storage']!.kill('SIGKILL');
      await sleep(300);
      await stack.services['storage']!.start();
    },
    'policy is killed': async () => {
      await stack.services['policy']!.kill('SIGKILL');
      await sleep(300);
      await stack.services['policy']!.start();
    },
    'NATS is killed': async () => {
      await stack.nats.stop('SIGKILL');
      await stack.nats.start();
    },
    'PostgreSQL is killed': () => stack.postgres.restart('immediate'),
  };

  test.each(Object.entries(faults))('goes on when %s in the middle, and every reader has every byte', { timeout: 600_000 }, async (_name, fault) => {
    for (let round = 0; round < rounds; round += 1) {
      const pipe = await makePipe(exchange);
      const sender = sendTo(pipe);
      const hash = createHash('sha256');
      const send = async () => {
        const bytes = randomBytes(2 * MiB);
        hash.update(bytes);
        await sender.write(bytes);
      };
      await send();
      const readers = await Promise.all([follow(pipe), follow(pipe)]);
      const digests = readers.map(digestOf);
      const broken = fault();
      for (let more = 0; more < 4; more += 1) await send();
      await broken;
      await send();
      const sha256 = hash.digest('hex');
      expect(await sender.end()).toMatchObject({ status: 200, json: { size: 12 * MiB, sha256 } });
      expect(await Promise.all(digests)).toEqual([[sha256, true], [sha256, true]]);
    }
  });

  test('whose sender vanishes leaves no file behind', { timeout: 120_000 }, async () => {
    const pipes = await Promise.all(Array.from({ length: 10 }, async () => {
      const pipe = await makePipe(exchange);
      const sender = sendTo(pipe);
      await sender.write(randomBytes(MiB));
      await (await follow(pipe)).take(1);
      sender.vanish();
      return pipe;
    }));
    expect(pipes).toHaveLength(10);
    expect(await compareBlobs(stack)).toEqual({ orphans: [], missing: [] });
  });

  test.runIf(process.platform === 'linux')('is larger than the memory that it takes, with slow readers alongside', { timeout: 1_200_000 }, async () => {
    const stop = watchMemory(stack);
    const pipe = await makePipe(exchange);
    const sender = sendTo(pipe);
    const block = randomBytes(MiB);
    const hash = createHash('sha256').update(block);
    await sender.write(block);
    const slow = await Promise.all(Array.from({ length: slowReaders }, () => follow(pipe)));
    for (const reader of slow) await reader.take(1);
    const fast = digestOf(await follow(pipe));
    for (let sent = MiB; sent < size; sent += MiB) {
      hash.update(block);
      await sender.write(block);
    }
    expect(await sender.end()).toMatchObject({ status: 200, json: { size } });
    expect(await fast).toEqual([hash.digest('hex'), true]);
    for (const reader of slow) reader.leave();
    for (const peak of Object.values(await stop())) expect(peak).toBeLessThan(bound);
  });
});
