/** Starts one stack for all tests that only speak to it, the way `npm start` does, in a folder of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startStack } from '../../deploy/local/stack.ts';
import { blobSettings, provideObjectStore } from './object-store.ts';

declare module 'vitest' {
  interface ProvidedContext {
    baseUrl: string;
    owner: { email: string; password: string };
    databaseUrl: string;
    dataDir: string;
  }
}

/** All tests come from one address, and some with wrong passwords. */
const oneMachine = { gateway: { RATE_LIMITS: 'off' }, policy: { SIGN_IN_ADDRESS_TRIES: '100000' } };

export default async function setup(project: TestProject) {
  const dataDir = await mkdtemp(join(tmpdir(), 'aex-test-'));
  const stopStore = await provideObjectStore();
  const stack = await startStack({ dataDir, port: 0, env: { ...oneMachine, ...blobSettings() }, progress: (line) => process.stdout.write(`${line}\n`) });
  // Tests of stores make scratch schemas on the same server; tests of requests use the same NATS.
  process.env['AEX_TEST_DATABASE_URL'] = stack.databaseUrl;
  process.env['AEX_TEST_NATS_URL'] = stack.natsUrl;
  project.provide('baseUrl', stack.baseUrl);
  project.provide('owner', stack.owner);
  project.provide('databaseUrl', stack.databaseUrl);
  project.provide('dataDir', dataDir);
  return async () => {
    await stack.stop();
    await stopStore();
    await rm(dataDir, { recursive: true, force: true });
  };
}
