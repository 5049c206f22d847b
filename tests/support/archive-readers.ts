/** The programs that people open archives with, as far as they are installed: each tests an archive and unpacks or lists it. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Reader {
  readonly name: string;
  readonly isInstalled: boolean;
  /** The names of the entries, in no order. Throws what the program says when it finds anything wrong. */
  list(archive: string): Promise<string[]>;
}

const isInstalled = (program: string) => {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** UTF-8 names are read as such wherever the locale has it. */
const env = { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', LANG: 'C.UTF-8', JAVA_TOOL_OPTIONS: '-Dsun.jnu.encoding=UTF-8 -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8' };

function run(program: string, parts: readonly string[], cwd?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, [...parts], { env, cwd, maxBuffer: 64 * 1_024 ** 2, timeout: 240_000 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${program} ${parts.join(' ')}: ${stdout.slice(-500)}${stderr.slice(-500)}`));
      else resolve(stdout);
    });
  });
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

const python = `
import json, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
bad = archive.testzip()
assert bad is None, bad
print(json.dumps(archive.namelist()))
`;

/** Tests with one program and lists with another look at the same archive. */
export const readers: readonly Reader[] = [
  {
    name: 'unzip', isInstalled: isInstalled('unzip') && isInstalled('zipinfo'),
    async list(archive) {
      await run('unzip', ['-tq', archive]);
      return linesOf(await run('zipinfo', ['-1', archive]));
    },
  },
  {
    name: '7z', isInstalled: isInstalled('7z'),
    async list(archive) {
      await run('7z', ['t', '-bd', archive]);
      return [...(await run('7z', ['l', '-slt', '-ba', archive])).matchAll(/^Path = (.*)$/gm)].map(([, name]) => name!);
    },
  },
  { name: 'Python', isInstalled: isInstalled('python3'), list: async (archive) => JSON.parse(await run('python3', ['-c', python, archive])) as string[] },
  { name: 'jar', isInstalled: isInstalled('jar'), list: async (archive) => linesOf(await run('jar', ['tf', archive])) },
  // From a pipe Java reads the archive front to back, as a browser's or a phone's reader does that cannot seek.
  { name: 'jar from a pipe', isInstalled: isInstalled('jar'), list: async (archive) => linesOf(await run('sh', ['-c', 'jar t < "$0"', archive])) },
];

/** Unpacks by unzip into a folder of its own: path -> content of every file, and what else lies beside that folder. */
export async function unpack(archive: string): Promise<{ files: Record<string, string>; beside: string[] }> {
  const above = await mkdtemp(join(tmpdir(), 'aex-unzip-'));
  try {
    await run('sh', ['-c', 'mkdir in && cd in && unzip -q "$0"', archive], above);
    const found = await readdir(join(above, 'in'), { recursive: true, withFileTypes: true });
    const paths = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const files = Object.fromEntries(await Promise.all(paths.map(async (path) => [path.slice(join(above, 'in').length + 1), await readFile(path, 'utf8')] as const)));
    return { files, beside: (await readdir(above)).filter((name) => name !== 'in') };
  } finally {
    await rm(above, { recursive: true, force: true });
  }
}
