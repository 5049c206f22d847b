/** The database may go away: connections die at random, and the server stops and crashes, under load. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import postgres from 'postgres';
import { figure, sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { becomes, brokenPromises, makeActors, storm, unbroken, waitForChange } from '../support/storm.ts';

const killingMs = figure(15_000, 60_000);
const restarts = figure(6, 20);

let stack: FaultStack;
let end: () => Promise<void>;
beforeAll(async () => { ({ stack, end } = await startFaultStack()); });
afterAll(async () => end());

describe('database faults', () => {
  test('connections that are terminated at random lose nothing that was acknowledged', { timeout: 600_000 }, async () => {
    const actors = await makeActors(stack);
    let killed = 0;
    await storm(actors, async () => { killed = await terminateConnections(stack.databaseUrl, killingMs); });
    expect(killed).toBeGreaterThan(killingMs / 500);
    expect(await becomes(stack, true, 5_000)).toBe(true);
    expect(await brokenPromises(actors, stack)).toEqual(unbroken);
  });

  test('the exchange says when the database is away, and serves again by itself', { timeout: 1_200_000 }, async () => {
    const actors = await makeActors(stack);
    const slow: string[] = [];
    await storm(actors, async () => {
      for (let round = 0; round < restarts; round += 1) {
        await stack.postgres.stop(round % 2 === 0 ? 'fast' : 'immediate');
        if (!(await becomes(stack, false, 5_000))) slow.push(`round ${round}: /readyz went on saying ready`);
        await stack.postgres.start();
        if (!(await waitForChange(actors, 5_000))) slow.push(`round ${round}: nothing was stored within 5 s of the return`);
        if (!(await becomes(stack, true, 5_000))) slow.push(`round ${round}: /readyz did not say ready again`);
        await sleep(1_000);
      }
    });
    expect(slow).toEqual([]);
    expect(await brokenPromises(actors, stack)).toEqual(unbroken);
  });

  test('no service had to be started again', () => {
    expect(stack.crashes).toEqual([]);
  });
});

/** Terminates a random connection of a service every 100 ms. Answers how many. */
async function terminateConnections(url: string, milliseconds: number): Promise<number> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  let killed = 0;
  for (const until = Date.now() + milliseconds; Date.now() < until; await sleep(100)) {
    const { count } = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where usename in ('policy', 'storage', 'audit', 'importer') and pid = (
        select pid from pg_stat_activity where usename in ('policy', 'storage', 'audit', 'importer') order by random() limit 1)`;
    killed += count;
  }
  await sql.end();
  return killed;
}
