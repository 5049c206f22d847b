/** NATS may go away: its server stops and crashes under load, and once loses everything that it held. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { figure, sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { becomes, brokenPromises, makeActors, storm, unbroken, waitForChange } from '../support/storm.ts';

const restarts = figure(6, 50);

let stack: FaultStack;
let end: () => Promise<void>;
beforeAll(async () => { ({ stack, end } = await startFaultStack()); });
afterAll(async () => end());

describe('NATS faults', () => {
  test('the exchange says when NATS is away, and serves again by itself', { timeout: 1_200_000 }, async () => {
    const actors = await makeActors(stack);
    const slow: string[] = [];
    await storm(actors, async () => {
      for (let round = 0; round < restarts; round += 1) {
        await stack.nats.stop(round % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
        if (!(await becomes(stack, false, 5_000))) slow.push(`round ${round}: /readyz went on saying ready`);
        await stack.nats.start();
        if (!(await waitForChange(actors, 10_000))) slow.push(`round ${round}: nothing was stored within 10 s of the return`);
        if (!(await becomes(stack, true, 5_000))) slow.push(`round ${round}: /readyz did not say ready again`);
        await sleep(1_000);
      }
    });
    expect(slow).toEqual([]);
    expect(await brokenPromises(actors, stack)).toEqual(unbroken);
  });

  test('a stream that is lost while audit lags loses no event', { timeout: 300_000 }, async () => {
    const actors = await makeActors(stack);
    await storm(actors, async () => {
      await stack.services['audit']!.kill('SIGKILL');
      await sleep(3_000);
      await stack.nats.wipeStream();
      await sleep(1_000);
      await stack.services['audit']!.start();
    });
    expect(await brokenPromises(actors, stack)).toEqual(unbroken);
  });

  test('no service had to be started again', () => {
    expect(stack.crashes).toEqual([]);
  });
});
