/** Commands that the pages show, run as a person would paste them: by a shell, in a folder of their own. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Why commands with curl cannot be run here; undefined when they can. */
export function whyNoCurl(): string | undefined {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'curl is not installed on this machine';
  }
}

export interface ShellRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Name -> content of every file that the commands left in their folder. */
  readonly files: Readonly<Record<string, string>>;
}

export async function runInShell(commands: string, env: Record<string, string> = {}): Promise<ShellRun> {
  const folder = await mkdtemp(join(tmpdir(), 'aex-shell-'));
  try {
    const ran = await new Promise<Omit<ShellRun, 'files'>>((resolve) => {
      execFile('sh', ['-c', commands], { cwd: folder, env: { PATH: process.env['PATH'], ...env }, timeout: 30_000 }, (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr });
      });
    });
    const names = await readdir(folder);
    const files = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)));
    return { ...ran, files };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const entities: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&#96;': '`', '&amp;': '&' };

/** The text of a code block of a page, as the browser would copy it. */
export function codeOf(page: string, id: string): string {
  const [, markup] = new RegExp(`<code id="${id}"[^>]*>([^<]*)</code>`).exec(page) ?? [];
  if (markup === undefined) throw new Error(`the page has no code block ${id}`);
  return markup.replace(/&(?:lt|gt|quot|#39|#96|amp);/g, (entity) => entities[entity]!);
}
