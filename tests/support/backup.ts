/** A backup as docs/operating.md describes it, of a stack that goes on serving: the database first, then the bytes. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { run } from '../../deploy/local/command.ts';
import type { Stack } from '../../deploy/local/stack.ts';

/** What a vault keeps. */
const secrets = ['secret', 'postgres-secret', 'local.json'];
/** NATS is not among it: it holds nothing that must be kept. */
const kept = ['postgres', 'blobs', ...secrets];

async function copy(from: string, to: string): Promise<void> {
  await run({ file: 'cp', args: ['-a', from, to] });
}

/** What pg_basebackup does: files are copied between two words to the server, then the log of what it changed meanwhile. */
export async function backUpDatabase({ databaseUrl, dataDir }: Pick<Stack, 'databaseUrl' | 'dataDir'>, folder: string): Promise<void> {
  const [from, to] = [join(dataDir, 'postgres'), join(folder, 'postgres')];
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
  try {
    await sql`select pg_backup_start('backup', fast => true)`;
    await copy(from, to);
    const [stopped] = await sql<{ labelfile: string }[]>`select labelfile from pg_backup_stop(wait_for_archive => false)`;
    await writeFile(join(to, 'backup_label'), stopped!.labelfile);
  } finally {
    await sql.end();
  }
  for (const name of ['pg_wal', 'postmaster.pid']) await rm(join(to, name), { recursive: true, force: true });
  await copy(join(from, 'pg_wal'), to);
}

export async function backUpBytes({ dataDir }: Pick<Stack, 'dataDir'>, folder: string): Promise<void> {
  for (const name of ['blobs', ...secrets]) await copy(join(dataDir, name), folder);
}

/** Everything is lost, and the backup put in its place. */
export async function wipeAndRestore(dataDir: string, folder: string): Promise<void> {
  await run({ file: 'find', args: [dataDir, '-mindepth', '1', '-delete'] });
  for (const name of kept) await copy(join(folder, name), dataDir);
}
