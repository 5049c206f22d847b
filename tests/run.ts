/** `npm test`: the compiler, then every test on a stack started as a user starts it. Arguments go to the test runner. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const bin = (name: string) => resolve(root, 'node_modules', '.bin', name);

function run(title: string, command: string, args: readonly string[]): void {
  process.stdout.write(`${title}\n`);
  const { status } = spawnSync(process.execPath, [command, ...args], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(bin('vitest'))) {
  process.stderr.write('The test runner is not installed; run npm ci without --omit=dev.\n');
  process.exit(1);
}
run('Checking types…', bin('tsc'), ['--noEmit']);
run('Running tests…', bin('vitest'), ['run', ...process.argv.slice(2)]);
