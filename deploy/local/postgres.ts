// The embedded PostgreSQL: a cluster in the data folder that listens on 127.0.0.1 only.
import { join } from 'node:path';
import postgres from 'postgres';
import type { Command } from './command.ts';
import { findFreePort } from './free-port.ts';
import { choosePostgresAccount, type PostgresAccount } from './postgres-account.ts';
import { findPostgresBinaries } from './postgres-binaries.ts';
import { makeCluster, removeLeftover } from './postgres-cluster.ts';
import { databaseAddress, databaseName, provisionDatabase } from './postgres-roles.ts';
import { SupervisedProcess } from './process.ts';
import { dieWithParent } from './running.ts';
import { keepSecret } from './secrets.ts';

/** A running PostgreSQL; its port stays the same until the stack ends. */
export interface Postgres {
  /** The administrator's address of the database `aex`. */
  url: string;
  port: number;
  readonly pid: number | undefined;
  start: () => Promise<void>;
  /** Ends it: `fast` closes sessions and writes a checkpoint, `immediate` is a crash that recovers at the next start. */
  stop: (mode?: StopMode) => Promise<void>;
  restart: (mode: StopMode) => Promise<void>;
}

export type StopMode = 'fast' | 'immediate';

const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

/** Makes the cluster on first use, starts it, and gives every service its role and schema. */
export async function startPostgres(options: {
  dataDir: string;
  secret: string;
  report: (line: string) => void;
  signal: AbortSignal;
}): Promise<Postgres> {
  const { dataDir, secret, report, signal } = options;
  const cluster = join(dataDir, 'postgres');
  const binaries = await findPostgresBinaries();
  const account = await choosePostgresAccount(binaries.postgres, cluster);
  const password = await keepSecret(join(dataDir, 'postgres-secret'));
  await removeLeftover(cluster);
  await makeCluster({ initdb: binaries.initdb, cluster, account, password, report, signal });
  const port = await findFreePort();
  const adminUrl = (database: string) => databaseAddress('postgres', password, port, database);
  const server = supervise({ command: await serverCommand(binaries.postgres, cluster, account, port), url: adminUrl('postgres'), dataDir, report });
  const running = steer(server, adminUrl(databaseName), port);
  await startAndProvision(running, () => provisionDatabase(adminUrl, secret), signal);
  return running;
}

async function startAndProvision(running: Postgres, provision: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const halt = () => void running.stop();
  signal.addEventListener('abort', halt);
  try {
    signal.throwIfAborted();
    await running.start();
    await provision();
    signal.throwIfAborted();
  } catch (error) {
    await running.stop();
    throw error;
  } finally {
    signal.removeEventListener('abort', halt);
  }
}

function steer(server: SupervisedProcess, url: string, port: number): Postgres {
  const stop = (mode: StopMode = 'fast') => server.stop(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  return {
    url,
    port,
    get pid() {
      return server.pid;
    },
    start: () => server.start(),
    stop,
    restart: async (mode) => {
      await stop(mode);
      await server.start();
    },
  };
}

function supervise(options: { command: Command; url: string; dataDir: string; report: (line: string) => void }): SupervisedProcess {
  const log = join(options.dataDir, 'logs', 'postgres.log');
  return new SupervisedProcess({
    name: 'postgres',
    command: options.command,
    outputPath: log,
    errorPath: log,
    isReady: () => accepts(options.url),
    // After a crash it replays its log first.
    readyWithinMs: 60_000,
    // What a killed server leaves in memory goes when its last session notices; until then a start is refused.
    attempts: 10,
    stopSignal: 'SIGINT',
    stopWithinMs: 30_000,
    report: options.report,
  });
}

async function serverCommand(program: string, cluster: string, account: PostgresAccount, port: number): Promise<Command> {
  const args = Object.entries({ ...settings, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  // The tool comes after the change of user, which would take its effect away.
  const [file = program, ...before] = [...(await dieWithParent('INT')), program];
  return account.as(file, [...before, '-D', cluster, ...args]);
}

async function accepts(url: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, connect_timeout: 2, onnotice: () => undefined });
  try {
    await sql`SELECT 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 1 }).catch(() => undefined);
  }
}
