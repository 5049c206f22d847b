// Finds a nats-server, or fetches one: on the PATH, in the cache, the official release, the system's package.
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findOnPath, run, succeeds } from './command.ts';
import { StartFailure } from './failure.ts';
import { unpackDebianPackage } from './nats-debian.ts';

const version = '2.12.15';
const releases = 'https://github.com/nats-io/nats-server/releases/download';

// The checksums that the official image of this release is built against. The ones of the other platforms
// are not pinned: they are read from the SHA256SUMS of the release itself, which guards against a damaged
// download and not against a changed release.
const pinned: Record<string, string> = {
  'linux-amd64': '58ab8131f819263897e2fc38e503e1b755b63bcafeecc7d12582487df48ca15e',
  'linux-arm64': 'b724db99fefbf8f5c808baa82819ee50350aee9734017e4a478f7e545cef3ab6',
};

const connectMs = 8_000;
const downloadMs = 120_000;

/** What a search needs: folders to keep a fetched server in, the first that can be written is used. */
export interface NatsSearch {
  folders: string[];
  report: (line: string) => void;
  signal: AbortSignal;
}

/** The path of a nats-server that runs on this machine. */
export async function findNatsServer(search: NatsSearch): Promise<string> {
  const onPath = await findOnPath('nats-server');
  // Debian's package installs into a folder that is on root's PATH only.
  const folders = ['/usr/local/sbin', '/usr/sbin', ...search.folders];
  const here = [...(onPath ? [onPath] : []), ...folders.map((folder) => join(folder, 'nats-server'))];
  for (const path of here) if (await runs(path)) return path;
  return fetchNatsServer(search);
}

/** The version of a nats-server, as numbers: [2, 12, 15]. */
export async function natsVersion(path: string): Promise<number[]> {
  const printed = await run({ file: path, args: ['--version'] });
  return (/v?(\d+)\.(\d+)\.(\d+)/.exec(printed) ?? []).slice(1).map(Number);
}

async function fetchNatsServer(search: NatsSearch): Promise<string> {
  const folder = await firstWritable(search.folders);
  const work = await mkdtemp(join(folder, 'fetch-'));
  const failures: string[] = [];
  try {
    for (const [name, fetchFrom] of [['official release', fromRelease], ['system package', unpackDebianPackage]] as const) {
      search.report(`Fetching nats-server (${name})…`);
      const program = await fetchFrom(work, search.signal).catch((error: unknown) => void failures.push(`${name}: ${reason(error)}`));
      search.signal.throwIfAborted();
      if (program && (await runs(program))) return await keep(program, folder);
      if (program) failures.push(`${name}: it does not run on this machine`);
    }
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  throw new StartFailure(
    `No nats-server was found and none could be fetched (${failures.join('; ')}): install nats-server ` +
      'so that it is on the PATH (`apt-get install nats-server`, `brew install nats-server`), or set NATS_URL to a running server with JetStream.',
  );
}

async function keep(program: string, folder: string): Promise<string> {
  const path = join(folder, 'nats-server');
  await chmod(program, 0o755);
  await rename(program, path);
  return path;
}

async function fromRelease(work: string, signal: AbortSignal): Promise<string> {
  const platform = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;
  const name = `nats-server-v${version}-${platform}`;
  const expected = pinned[platform] ?? (await publishedChecksum(`${name}.tar.gz`, signal));
  const archive = await download(`${releases}/v${version}/${name}.tar.gz`, signal);
  const actual = createHash('sha256').update(archive).digest('hex');
  if (actual !== expected) throw new Error(`the checksum of ${name}.tar.gz is ${actual}, not ${expected}`);
  await writeFile(join(work, 'release.tar.gz'), archive);
  await run({ file: 'tar', args: ['-xzf', 'release.tar.gz'], cwd: work }, signal);
  return join(work, name, 'nats-server');
}

async function publishedChecksum(file: string, signal: AbortSignal): Promise<string> {
  const sums = (await download(`${releases}/v${version}/SHA256SUMS`, signal)).toString();
  const line = sums.split('\n').find((each) => each.trim().endsWith(file));
  if (!line) throw new Error(`the release has no ${file}`);
  return line.trim().split(/\s+/)[0] ?? '';
}

// A closed network often answers nothing at all: give up soon on the answer, but not on a slow download.
async function download(url: string, signal: AbortSignal): Promise<Buffer> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(new Error(`no answer from ${new URL(url).host}`)), connectMs);
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, silence.signal, AbortSignal.timeout(downloadMs)]) });
    clearTimeout(timer);
    if (!response.ok) throw new Error(`${new URL(url).host} answered ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  } finally {
    clearTimeout(timer);
  }
}

async function firstWritable(folders: string[]): Promise<string> {
  for (const folder of folders) {
    const probe = await mkdir(folder, { recursive: true })
      .then(() => mkdtemp(join(folder, 'probe-')))
      .catch(() => undefined);
    if (!probe) continue;
    await rm(probe, { recursive: true });
    return folder;
  }
  throw new StartFailure(`No nats-server was found, and none of these folders can be written to keep one: ${folders.join(', ')}.`);
}

async function runs(path: string): Promise<boolean> {
  return succeeds({ file: path, args: ['--version'] });
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message ? error.cause.message : error.message;
}
