// Takes nats-server out of the system's own package (Debian, Ubuntu), without root and without installing it.
import { access, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findOnPath, run } from './command.ts';

/** Downloads the package `nats-server` with apt, unpacks it into `work` and gives the program's path. */
export async function unpackDebianPackage(work: string, signal: AbortSignal): Promise<string> {
  if (!(await findOnPath('apt-get')) || !(await findOnPath('dpkg-deb'))) throw new Error('this system has no apt');
  const file = await downloadPackage(work, [], signal).catch(() => downloadWithOwnLists(work, signal));
  await run({ file: 'dpkg-deb', args: ['-x', join(work, file), join(work, 'package')] }, signal);
  for (const folder of ['usr/sbin', 'usr/bin']) {
    const path = join(work, 'package', folder, 'nats-server');
    if (await access(path).then(() => true, () => false)) return path;
  }
  throw new Error('the package holds no nats-server');
}

// A fresh system has no package lists, or old ones, and only root may renew them: so into folders of our own.
async function downloadWithOwnLists(work: string, signal: AbortSignal): Promise<string> {
  const folders = { State: join(work, 'state'), Cache: join(work, 'cache') };
  await mkdir(join(folders.State, 'lists', 'partial'), { recursive: true });
  await mkdir(join(folders.Cache, 'archives', 'partial'), { recursive: true });
  const options = [`Dir::State=${folders.State}`, `Dir::State::status=/var/lib/dpkg/status`, `Dir::Cache=${folders.Cache}`];
  await apt(work, ['update'], options, signal);
  return downloadPackage(work, options, signal);
}

async function downloadPackage(work: string, options: string[], signal: AbortSignal): Promise<string> {
  await apt(work, ['download', 'nats-server'], options, signal);
  const file = (await readdir(work)).find((name) => name.endsWith('.deb'));
  if (!file) throw new Error('apt downloaded nothing');
  return file;
}

async function apt(work: string, words: string[], options: string[], signal: AbortSignal): Promise<void> {
  // As root, apt would download as a user of its own, who cannot reach this folder.
  const all = ['APT::Sandbox::User=root', 'Acquire::Retries=1', 'Acquire::http::Timeout=10', ...options];
  await run({ file: 'apt-get', args: ['-q', ...all.flatMap((option) => ['-o', option]), ...words], cwd: work }, signal);
}
