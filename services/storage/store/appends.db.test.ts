/** Append uploads against a real PostgreSQL: one writer at a time, and no piece but at the end. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database, Sql } from '../../../shared/db.ts';
import { newId, randomText } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { insertAppend } from './appends.ts';
import { openStore, type Store } from './store.ts';

let scratch: ScratchDatabase;
let database: Database;
let store: Store;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  database = scratch.database;
  store = openStore(database);
});
afterAll(() => scratch.drop());

const run = <T extends object>(statement: (sql: Sql) => PromiseLike<T[]>) => database.run(statement);

async function begin(maxBytes = 1_000): Promise<string> {
  const id = newId('upload');
  await run((sql) => sql`with one as (select 1) ${insertAppend(sql, 'one', { id, transferId: null, maxBytes })}`);
  return id;
}

const lease = (id: string, facts: Partial<Parameters<Store['takeLease']>[0]> = {}) =>
  store.takeLease({ id, lease: randomText(), seconds: 60, spareKey: randomText(), sameFile: true, checkAfter: 60, ...facts });

async function writer(id: string, facts: Partial<Parameters<Store['takeLease']>[0]> = {}) {
  const append = await lease(id, facts);
  if (!append) throw new Error('no lease');
  return append;
}

type Writer = Awaited<ReturnType<typeof writer>>;
const record = ({ id, lease: held, key }: Writer, offset: number, size: number, facts: { key?: string; nextKey?: string } = {}) =>
  store.recordPiece({ id, lease: held!, offset, size, key: facts.key ?? key! }, { key: facts.nextKey ?? null, seconds: 60, checkAfter: 60 });

const pieces = (id: string) => store.findPieces(id, 0, 100);

describe('an append upload', () => {
  test('has one writer at a time, and another when that one has stopped or went silent', async () => {
    const id = await begin();
    const racers = await Promise.all(Array.from({ length: 8 }, () => lease(id)));
    expect(racers.filter(Boolean)).toHaveLength(1);
    const first = racers.find(Boolean)!;
    await record(first, 0, 10);
    expect(await store.releaseLease(id, first.lease!)).toBe(true);
    const second = await writer(id, { seconds: 0 });
    expect(second).toMatchObject({ received: 10, key: first.key });
    expect(await record(first, 10, 1)).toBeUndefined();
    expect(await store.keepLease(id, first.lease!, 60)).toBeUndefined();
    expect(await writer(id)).toMatchObject({ received: 10 });
    expect(await record(second, 10, 1)).toBeUndefined();
    expect(await store.keepLease(id, second.lease!, 60)).toBeUndefined();
  });

  test('that takes one writer in its life takes no second, however that one ended', async () => {
    const id = await begin();
    const only = await writer(id, { once: true, seconds: 0 });
    expect(await lease(id, { once: true })).toBeUndefined();
    await store.releaseLease(id, only.lease!);
    expect(await lease(id, { once: true })).toBeUndefined();
  });

  test('after a writer that went silent goes on in another file, which that one does not touch', async () => {
    const id = await begin();
    const silent = await writer(id, { seconds: 0 });
    const next = await writer(id);
    expect(next.key).not.toBe(silent.key);
  });

  test('takes a piece at its end only, within its bound, of its own file', async () => {
    const id = await begin(25);
    const held = await writer(id);
    expect(await record(held, 5, 10)).toBeUndefined();
    expect(await record(held, 0, 10, { key: randomText() })).toBeUndefined();
    const answers = await Promise.all([record(held, 0, 10), record(held, 0, 10), record(held, 0, 10)]);
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(await record(held, 10, 16)).toBeUndefined();
    expect(await record(held, 10, 15)).toMatchObject({ received: 25 });
    expect(await pieces(id)).toEqual([{ start: 0, key: held.key, offset: 0, size: 25 }]);
  });

  test('takes no piece of a file that was given up', async () => {
    const id = await begin();
    const held = await writer(id);
    await store.discardBlob(held.key!);
    expect(await record(held, 0, 10)).toBeUndefined();
    expect(await store.findAppend(id)).toMatchObject({ received: 0 });
    expect(await pieces(id)).toEqual([]);
  });

  test('with a file for each piece lists them in their order, and answers those from an offset on', async () => {
    const id = await begin();
    let held = await writer(id, { sameFile: false });
    const keys = [held.key];
    for (const offset of [0, 10, 20]) {
      held = { ...held, ...(await record(held, offset, 10, { nextKey: randomText() }))! };
      keys.push(held.key);
    }
    expect((await pieces(id)).map(({ start, key, offset, size }) => [start, key, offset, size])).toEqual([[0, keys[0], 0, 10], [10, keys[1], 0, 10], [20, keys[2], 0, 10]]);
    expect((await store.findPieces(id, 10, 1)).map(({ start }) => start)).toEqual([10]);
    expect((await store.findPieces(id, 25, 9)).map(({ start }) => start)).toEqual([20]);
    expect(await store.findPieces(id, 30, 9)).toEqual([]);
  });

  test('refuses a writer that expects another offset', async () => {
    const id = await begin();
    expect(await lease(id, { offset: 1 })).toBeUndefined();
    expect(await lease(id, { offset: 0 })).toMatchObject({ received: 0 });
  });
});
