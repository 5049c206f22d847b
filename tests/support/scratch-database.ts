/** A schema of its own for one test file, on the server that the test run started. */
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import postgres from 'postgres';
import { openDatabase, type Database, type Parameters } from '../../shared/db.ts';

export interface ScratchDatabase {
  readonly database: Database;
  drop(): Promise<void>;
}

/** Makes the schema and applies a service's migrations to it. */
export async function makeScratchDatabase(migrations: URL, parameters: Parameters = {}): Promise<ScratchDatabase> {
  const adminUrl = process.env['AEX_TEST_DATABASE_URL'];
  if (!adminUrl) throw new Error('AEX_TEST_DATABASE_URL must be set; `npm test` does.');
  const schema = `scratch_${randomUUID().replaceAll('-', '')}`;
  const admin = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  await admin.unsafe(`create schema ${schema}`);
  const url = new URL(adminUrl);
  url.searchParams.set('search_path', schema);
  const database = openDatabase(url.href, 8, pino({ level: 'silent' }), parameters);
  // Replicas that start together migrate together.
  await Promise.all([database.migrate(migrations), database.migrate(migrations)]);
  return {
    database,
    async drop() {
      await database.close();
      await admin.unsafe(`drop schema ${schema} cascade`);
      await admin.end();
    },
  };
}
