// Decides as whom PostgreSQL runs: it refuses to run as root, and the machine may have only root.
import { chmod, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { run, succeeds, type Command } from './command.ts';
import { StartFailure, systemCode } from './failure.ts';

/** Runs PostgreSQL's programs as a user that it accepts, and owner of the files that they use. */
export interface PostgresAccount {
  as: (file: string, args: string[]) => Command;
  /** Gives a file or folder to the user that the programs run as. */
  give: (path: string) => Promise<void>;
}

// Any user but root will do, if /etc/passwd knows it: initdb asks for its own name. User 1 is there everywhere.
const namespace = ['unshare', '--user', '--map-user=1', '--map-group=1', '--'];
const environment = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
const nobody = { uid: 65534, gid: 65534 };

/**
 * The account for a cluster in `cluster`. An ordinary user runs it directly. Root runs it in a user
 * namespace, where it is somebody else to itself and the files stay root's; or, where the system refuses
 * namespaces, as an unprivileged user who then owns the cluster. Who owns an existing cluster is the
 * memory of what was chosen for it.
 */
export async function choosePostgresAccount(postgres: string, cluster: string): Promise<PostgresAccount> {
  if (process.geteuid?.() !== 0) return direct();
  const owner = await ownerOf(cluster);
  const candidates = owner && owner.uid !== 0 ? [unprivileged(owner), inNamespace()] : [inNamespace(), unprivileged(await unprivilegedUser())];
  for (const account of candidates) {
    if (!(await succeeds(account.as(postgres, ['--version'])))) continue;
    await letThrough(cluster, account);
    if (!(await succeeds(account.as('/bin/sh', ['-c', 'cd "$0"', dirname(cluster)])))) continue;
    if (owner) await account.give(cluster);
    return account;
  }
  throw new StartFailure(
    'PostgreSQL does not run as root, and no other user can reach this project and its data folder; ' +
      'start as an ordinary user, or keep the project and AEX_DATA_DIR in folders that others may enter.',
  );
}

function direct(): PostgresAccount {
  return { as: (file, args) => ({ file, args, cwd: '/', env: environment }), give: async () => undefined };
}

function inNamespace(): PostgresAccount {
  const [file = '', ...before] = namespace;
  return {
    as: (program, args) => ({ file, args: [...before, program, ...args], cwd: '/', env: environment }),
    give: (path) => changeOwner(path, 0, 0),
  };
}

function unprivileged(user: { uid: number; gid: number }): PostgresAccount {
  return {
    as: (file, args) => ({ file, args, cwd: '/', env: environment, ...user }),
    give: (path) => changeOwner(path, user.uid, user.gid),
  };
}

async function changeOwner(path: string, uid: number, gid: number): Promise<void> {
  const now = await ownerOf(path);
  if (now && now.uid !== uid) await run({ file: 'chown', args: ['-R', `${uid}:${gid}`, path] });
}

// The data folder is made for its owner only; another user has to pass through it to reach the cluster.
async function letThrough(cluster: string, account: PostgresAccount): Promise<void> {
  const dataDir = dirname(cluster);
  if (await succeeds(account.as('/bin/sh', ['-c', 'cd "$0"', dataDir]))) return;
  await chmod(dataDir, (await stat(dataDir)).mode | 0o011);
}

async function ownerOf(path: string): Promise<{ uid: number; gid: number } | undefined> {
  return stat(path).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}

async function unprivilegedUser(): Promise<{ uid: number; gid: number }> {
  try {
    const uid = Number(await run({ file: 'id', args: ['-u', 'postgres'] }));
    return { uid, gid: Number(await run({ file: 'id', args: ['-g', 'postgres'] })) };
  } catch {
    return nobody;
  }
}
