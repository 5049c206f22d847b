/** The driver as it is set up here, against a real PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, describe, expect, test } from 'vitest';
import { openDatabase } from './db.ts';

const database = openDatabase(process.env['AEX_TEST_DATABASE_URL']!, 4, pino({ level: 'silent' }));
afterAll(() => database.close());

describe('values', () => {
  test.each([
    [[]],
    [['plain', 'two words', '']],
    [['a,b', '{c}', '"quoted"', 'back\\slash', '\\"', "it's", 'NULL', 'null', ' ', '\n', 'ü😀']],
  ])('an array of text comes back as it went: %j', async (items) => {
    const [row] = await database.run((sql) => sql<{ back: string[]; count: number }[]>`select ${items}::text[] as back, coalesce(array_length(${items}::text[], 1), 0) as count`);
    expect(row).toEqual({ back: items, count: items.length });
  });

  test('an array of ids finds its rows', async () => {
    const ids = [randomUUID(), randomUUID()];
    const rows = await database.run((sql) => sql<{ id: string }[]>`select id from (select unnest(${ids}::uuid[]) as id) t where id = any(${ids})`);
    expect(rows.map(({ id }) => id).sort()).toEqual([...ids].sort());
  });

  test('a size of 5 TiB stays exact', async () => {
    const size = 5 * 1_024 ** 4 + 1;
    const [row] = await database.run((sql) => sql<{ size: number }[]>`select ${size}::bigint as size`);
    expect(row!.size).toBe(size);
  });
});

describe('a connection', () => {
  test('asks nothing of its own: what nobody awaits would end the process when the connection is lost', async () => {
    const before = await ownStatements();
    await database.run((sql) => sql`select 1`);
    expect([...before, ...(await ownStatements())].filter((query) => query.includes('pg_type'))).toEqual([]);
  });

  test('that is lost fails its statement as unavailable, and the next one works', async () => {
    const lost = database.run((sql) => sql`select pg_terminate_backend(pg_backend_pid())`);
    await expect(lost).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await database.isReady()).toBe(true);
  });
});

/** The last statement of each of our connections. */
async function ownStatements(): Promise<string[]> {
  const rows = await database.run((sql) => sql<{ query: string }[]>`select query from pg_stat_activity where application_name = 'asset-exchange' and pid <> pg_backend_pid()`);
  return rows.map(({ query }) => query);
}
