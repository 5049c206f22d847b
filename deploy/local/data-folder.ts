// The folder in which a stack keeps everything, and the lock that gives it to one stack at a time.
import { access, mkdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartFailure, systemCode } from './failure.ts';
import { isAlive, startMark } from './running.ts';

/** A data folder that belongs to this stack until `release`. */
export interface DataFolder {
  path: string;
  /** Whether the stack before this one died without cleaning up. */
  wasAbandoned: boolean;
  release: () => Promise<void>;
}

/** Makes the folder where needed and takes its lock; throws one sentence when either is impossible. */
export async function openDataFolder(path: string): Promise<DataFolder> {
  try {
    for (const part of ['', 'logs', 'blobs', 'nats']) await makeFolder(join(path, part));
    const wasAbandoned = await takeLock(join(path, 'lock'));
    return { path, wasAbandoned, release: () => rm(join(path, 'lock'), { force: true }) };
  } catch (error) {
    if (error instanceof StartFailure) throw error;
    throw new StartFailure(`The data folder ${path} cannot be written (${systemCode(error) ?? error}); choose another with AEX_DATA_DIR.`);
  }
}

// Not by Node's recursive mkdir, which never returns where a folder cannot be made, as in /proc.
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return;
    if (systemCode(error) !== 'ENOENT' || (await isThere(dirname(path)))) throw error;
    await makeFolder(dirname(path));
    await makeFolder(path);
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function takeLock(lock: string): Promise<boolean> {
  const mine = `${process.pid} ${await startMark(process.pid)}\n`;
  for (let abandoned = false; ; abandoned = true) {
    try {
      await writeFile(lock, mine, { flag: 'wx', mode: 0o600 });
      return abandoned;
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
      await removeIfAbandoned(lock);
    }
  }
}

async function removeIfAbandoned(lock: string): Promise<void> {
  const seen = await readLock(lock);
  const [pid = '', ...mark] = seen.trim().split(' ');
  if (Number(pid) > 0 && isAlive(Number(pid)) && (await startMark(Number(pid))) === mark.join(' ')) {
    throw new StartFailure(`The data folder ${lock.slice(0, -'/lock'.length)} is in use by another stack (process ${pid}).`);
  }
  // Moved aside before it is removed: of two starts that both found it abandoned, one may by now hold it.
  const aside = `${lock}.${process.pid}`;
  await rename(lock, aside).catch(() => undefined);
  const moved = await readFile(aside, 'utf8').catch(() => seen);
  if (moved !== seen) await writeFile(lock, moved, { flag: 'wx', mode: 0o600 }).catch(() => undefined);
  await unlink(aside).catch(() => undefined);
}

async function readLock(lock: string): Promise<string> {
  const seen = await readFile(lock, 'utf8').catch(() => '');
  if (seen) return seen;
  // Its maker may be between creating and writing it.
  await sleep(200);
  return readFile(lock, 'utf8').catch(() => '');
}
