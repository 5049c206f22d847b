/** The rows that the floors' statements find by key: many that are seldom met twice, and one that all want. */
import postgres from 'postgres';

export const distinctRows = 10_000;
export const hotKey = distinctRows;

/** Makes the scratch schema with its rows. */
export async function makeRows(databaseUrl: string, schema: string): Promise<void> {
  await withClient(databaseUrl, async (sql) => {
    await sql`create schema ${sql(schema)}`;
    await sql`create table ${sql(schema)}.counters (key int primary key, name text not null, uses int not null default 0, max_uses int not null)`;
    await sql`insert into ${sql(schema)}.counters (key, name, max_uses) select n, 'counter ' || n, 1000000000 from generate_series(0, ${hotKey}::int) n`;
  });
}

export async function dropRows(databaseUrl: string, schema: string): Promise<void> {
  await withClient(databaseUrl, async (sql) => {
    await sql`drop schema if exists ${sql(schema)} cascade`;
  });
}

async function withClient(url: string, work: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => undefined });
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
