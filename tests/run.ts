/** `npm test`: the compiler, then every test on a stack started as a user starts it, and the interface once more on an object store. Arguments go to the test runner. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { findObjectStore, noObjectStore } from './support/object-store.ts';

const root = resolve(import.meta.dirname, '..');
const bin = (name: string) => resolve(root, 'node_modules', '.bin', name);
const wanted = process.argv.slice(2);

function run(title: string, command: string, args: readonly string[], env: Record<string, string> = {}): void {
  process.stdout.write(`${title}\n`);
  const { status } = spawnSync(process.execPath, [command, ...args], { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(bin('vitest'))) {
  process.stderr.write('The test runner is not installed; run npm ci without --omit=dev.\n');
  process.exit(1);
}
run('Checking types…', bin('tsc'), ['--noEmit']);
run('Running tests…', bin('vitest'), ['run', ...wanted]);
if (wanted.length === 0) {
  // The bound on memory is tried as well: bytes take another way through the gateway.
  const onStore = ['run', '--project', 'spec', '--project', 'faults', 'tests/spec/', 'tests/browser/', 'tests/faults/memory'];
  if (await findObjectStore()) run('Running the tests of the interface on an object store…', bin('vitest'), onStore, { AEX_TEST_BLOBS: 's3' });
  else process.stdout.write(`The interface on an object store: ${noObjectStore}.\n`);
}
