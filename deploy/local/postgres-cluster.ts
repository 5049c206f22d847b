// The files of the embedded PostgreSQL: makes the cluster once, and clears away what a dead launcher left.
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.ts';
import { StartFailure } from './failure.ts';
import type { PostgresAccount } from './postgres-account.ts';
import { commandLine, isAlive, stopLeftover } from './running.ts';

/** Where and how a cluster is made. */
export interface ClusterPlan {
  initdb: string;
  cluster: string;
  account: PostgresAccount;
  /** The administrator's password. */
  password: string;
  report: (line: string) => void;
  signal: AbortSignal;
}

/** Makes the cluster unless it is there; under another name first, so that an interrupted start leaves no half of one. */
export async function makeCluster(plan: ClusterPlan): Promise<void> {
  const { cluster, account, signal } = plan;
  if (existsSync(cluster)) return;
  const [fresh, passwordFile] = [`${cluster}.new`, `${cluster}.password`];
  plan.report('Making the database…');
  try {
    await rm(fresh, { recursive: true, force: true });
    await mkdir(fresh, { mode: 0o700 });
    await writeFile(passwordFile, plan.password, { mode: 0o600 });
    for (const path of [fresh, passwordFile]) await account.give(path);
    await run(account.as(plan.initdb, initdbArguments(fresh, passwordFile)), signal);
    await rename(fresh, cluster);
  } catch (error) {
    signal.throwIfAborted();
    throw new StartFailure(`The database could not be made: ${error instanceof Error ? error.message : error}`);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

function initdbArguments(folder: string, passwordFile: string): string[] {
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const access = ['--username=postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  return ['-D', folder, ...access, ...locale, '--data-checksums'];
}

/** Stops the server of a launcher that died, and its claim on the cluster when that would block a new one. */
export async function removeLeftover(cluster: string): Promise<void> {
  const pidFile = join(cluster, 'postmaster.pid');
  await stopLeftover(pidFile, cluster, 'SIGINT');
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
  // After a restart of the machine the id may be another program's, and PostgreSQL would take that for itself.
  // In every other case the file stays: it is how PostgreSQL finds sessions that outlived a killed server.
  if (pid > 0 && isAlive(pid) && !(await commandLine(pid)).includes('postgres')) await rm(pidFile);
}
