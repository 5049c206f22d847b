// Runs a program to its end, for the steps that prepare a start.
import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** A program with everything that is needed to start it. */
export interface Command {
  file: string;
  args: string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
}

/** Runs `command` and gives what it printed; throws with the end of its error output when it fails. */
export function run(command: Command, signal?: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const { file, args, ...options } = command;
    const child = spawn(file, args, { ...options, ...(signal && { signal }), stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk));
    child.stderr.on('data', (chunk: Buffer) => (errors = (errors + chunk).slice(-4096)));
    child.once('error', reject);
    child.once('close', (code, killer) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${file} ended with ${killer ?? `exit code ${code}`}: ${errors.trim() || output.slice(-4096).trim()}`));
    });
  });
}

/** Whether `command` can be run and succeeds. */
export async function succeeds(command: Command): Promise<boolean> {
  return run(command).then(
    () => true,
    () => false,
  );
}

/** Where a program is found on the PATH, if anywhere. */
export async function findOnPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder || '.', name);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}
