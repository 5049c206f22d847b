/** A schema of its own for one test file, on the server that AEX_TEST_DATABASE_URL names. */
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import postgres from 'postgres';
import { openDatabase, type Database } from '../../../shared/db.ts';

export interface ScratchDatabase {
  readonly database: Database;
  drop(): Promise<void>;
}

export async function makeScratchDatabase(adminUrl: string | undefined): Promise<ScratchDatabase> {
  if (!adminUrl) throw new Error('AEX_TEST_DATABASE_URL must be set');
  const schema = `storage_${randomUUID().slice(0, 8)}`;
  const admin = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  await admin.unsafe(`create schema ${schema}`);
  const url = new URL(adminUrl);
  url.searchParams.set('search_path', schema);
  const database = openDatabase(url.href, 8, pino({ level: 'silent' }));
  await database.migrate(new URL('./migrations/', import.meta.url));
  return {
    database,
    async drop() {
      await database.close();
      await admin.unsafe(`drop schema ${schema} cascade`);
      await admin.end();
    },
  };
}
