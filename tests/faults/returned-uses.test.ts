/** A fetch that fails before its first byte costs nothing: its use, or its grant, works for the next one. */
import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import type { Stored } from '../support/ledger.ts';
import { fetchStored, issueGrant, upload, type Actors } from '../support/steps.ts';
import { becomes, makeActors } from '../support/storm.ts';

let stack: FaultStack;
let end: () => Promise<void>;
let actors: Actors;
beforeAll(async () => { ({ stack, end } = await startFaultStack()); });
beforeEach(async () => { actors = await makeActors(stack); });
afterAll(async () => end());

async function store(kind: Stored['kind'], size: number, maxUses?: number): Promise<Stored> {
  await upload(actors, { kind, lane: 'single', size, ...(maxUses && { maxUses }) });
  return actors.ledger.stored.at(-1)!;
}

async function usesOf({ shareId }: Stored): Promise<number> {
  return (await stack.query<{ uses: number }>(`select uses::int as uses from policy.shares where id = '${shareId}'`))[0]!.uses;
}

describe('fetches that fail before their first byte', () => {
  test('storage is down: a capped share keeps its use, and a grant stays good', async () => {
    const capped = await store('capped', 4_096, 1);
    const granted = await store('granted', 4_096);
    const grant = await issueGrant(actors, granted);
    await stack.services['storage']!.kill('SIGKILL');

    for (let tries = 0; tries < 3; tries += 1) {
      expect([503, 504]).toContain((await fetchStored(actors, capped)).status);
      expect([503, 504]).toContain((await fetchStored(actors, granted, grant)).status);
    }
    await stack.services['storage']!.start();
    expect(await becomes(stack, true, 10_000)).toBe(true);

    expect((await fetchStored(actors, granted, grant)).status).toBe(200);
    expect((await fetchStored(actors, granted, grant)).json.code).toBe('grant_already_used');
    expect((await fetchStored(actors, capped)).status).toBe(200);
    expect((await fetchStored(actors, capped)).json.code).toBe('share_use_limit_exceeded');
    expect(actors.ledger.surprises).toEqual([]);
  });

  test('a file is gone: every fetch is an error, and none costs a use', async () => {
    const before = await files();
    const stored = await store('capped', 1_000_000, 2);
    const [file] = (await files()).filter((path) => !before.includes(path));
    await unlink(file!);

    for (let tries = 0; tries < 5; tries += 1) {
      const reply = await fetchStored(actors, stored);
      expect(reply).toMatchObject({ whole: true, status: 500, json: { code: 'internal' } });
    }
    expect(await eventually(() => usesOf(stored), (uses) => uses === 0, 5_000)).toBe(0);
  });

  test('policy dies while a use is being spent: what was spent after all comes back', async () => {
    const stored = await store('capped', 4_096, 3);
    const fetching = await lockShare(stored, async () => {
      const begun = fetchStored(actors, stored);
      await waitForSpending();
      await stack.services['policy']!.kill('SIGKILL');
      return { begun };
    });
    // Nobody is left to hear of it, but the database finishes what it was told.
    expect(await eventually(() => usesOf(stored), (uses) => uses === 1, 5_000)).toBe(1);
    expect([503, 504]).toContain((await fetching.begun).status);
    await stack.services['policy']!.start();
    expect(await becomes(stack, true, 10_000)).toBe(true);
    expect(await eventually(() => usesOf(stored), (uses) => uses === 0, 20_000)).toBe(0);
    for (let use = 0; use < 3; use += 1) expect((await fetchStored(actors, stored)).status).toBe(200);
    expect((await fetchStored(actors, stored)).status).toBe(410);
  });
});

async function files(): Promise<string[]> {
  const entries = await readdir(join(stack.dataDir, 'blobs'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Holds a share's row while something is done, so that whoever spends a use of it has to wait. */
async function lockShare<T>({ shareId }: Stored, work: () => Promise<T>): Promise<T> {
  const sql = postgres(stack.databaseUrl, { max: 1, onnotice: () => undefined });
  try {
    return await sql.begin(async (held) => {
      await held`select from policy.shares where id = ${shareId} for update`;
      return work();
    }) as T;
  } finally {
    await sql.end();
  }
}

async function waitForSpending(): Promise<void> {
  const waiting = () => stack.query(`select from pg_stat_activity where usename = 'policy' and wait_event_type = 'Lock' and query like '%update shares set uses%'`);
  expect(await eventually(waiting, (rows) => rows.length > 0, 3_000)).toHaveLength(1);
}
