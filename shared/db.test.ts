/** The driver as it is set up here, against a real PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import postgres from 'postgres';
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

describe('a migration', () => {
  test('that needs a table in use gives way to those who read it, and comes again', async () => {
    const { url, folder, admin, drop } = await makeSchema("create table busy (a int)");
    const reader = await admin.reserve();
    await reader.unsafe('begin; select * from busy');
    await writeFile(join(folder, '002-more.sql'), 'alter table busy add column b int');
    const later = openDatabase(url, 2, pino({ level: 'silent' }));
    let migrated = false;
    const migrating = later.migrate(pathToFileURL(`${folder}/`)).then(() => { migrated = true; });
    await expect.poll(() => later.run((sql) => sql`select 1 from pg_locks where not granted and relation = 'busy'::regclass`), { timeout: 10_000 }).toHaveLength(1);
    // Whoever comes after a statement that waits for the whole table waits with it.
    await later.run((sql) => sql`select * from busy`);
    expect(migrated).toBe(false);
    await reader.unsafe('commit');
    await migrating;
    await later.run((sql) => sql`select b from busy`);
    reader.release();
    await drop();
    await Promise.all([later.close(), admin.end(), rm(folder, { recursive: true })]);
  });
});

/** A schema of its own with one migration applied, and where the next one goes. */
async function makeSchema(first: string) {
  const schema = `scratch_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(process.env['AEX_TEST_DATABASE_URL']!);
  url.searchParams.set('search_path', schema);
  const admin = postgres(url.href, { max: 2, onnotice: () => undefined });
  await admin.unsafe(`create schema ${schema}`);
  const folder = await mkdtemp(join(tmpdir(), 'aex-migrations-'));
  await writeFile(join(folder, '001-first.sql'), first);
  const opened = openDatabase(url.href, 1, pino({ level: 'silent' }));
  await opened.migrate(pathToFileURL(`${folder}/`));
  await opened.close();
  return { url: url.href, folder, admin, drop: () => admin.unsafe(`drop schema ${schema} cascade`) };
}

/** The last statement of each of our connections. */
async function ownStatements(): Promise<string[]> {
  const rows = await database.run((sql) => sql<{ query: string }[]>`select query from pg_stat_activity where application_name = 'asset-exchange' and pid <> pg_backend_pid()`);
  return rows.map(({ query }) => query);
}
