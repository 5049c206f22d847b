/** Every service may be killed at any moment: one after another, under load, and started again. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { figure, sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { becomes, brokenPromises, makeActors, storm, unbroken, waitForChange } from '../support/storm.ts';

const rounds = figure(3, 50);
const services = ['policy', 'storage', 'audit', 'importer', 'gateway'] as const;
/** A killed service stays down for this long. */
const downMs = 500;

let stack: FaultStack;
let end: () => Promise<void>;
beforeAll(async () => { ({ stack, end } = await startFaultStack()); });
afterAll(async () => end());

describe('killed services', () => {
  test('kill -9 of each loses nothing, doubles nothing and leaves nothing behind', { timeout: 2_400_000 }, async () => {
    const actors = await makeActors(stack);
    const slow: string[] = [];
    await storm(actors, async () => {
      for (let round = 0; round < rounds * services.length; round += 1) {
        const name = services[round % services.length]!;
        await stack.services[name]!.kill('SIGKILL');
        await sleep(downMs);
        await stack.services[name]!.start();
        if (!(await waitForChange(actors, 10_000))) slow.push(`round ${round}: nothing was stored within 10 s of the return of ${name}`);
        if (!(await becomes(stack, true, 10_000))) slow.push(`round ${round}: /readyz did not say ready after the return of ${name}`);
        await sleep(500);
      }
    });
    expect(slow).toEqual([]);
    expect(await brokenPromises(actors, stack, { gatewayKilled: true })).toEqual(unbroken);
    expect(stack.crashes).toEqual([]);
  });
});
