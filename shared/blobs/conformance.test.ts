/** Every driver against the same promises. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { describeDriver } from './conformance.ts';
import { openFsBlobs } from './fs.ts';

const roots: string[] = [];

afterAll(async () => {
  await Promise.all(roots.map((root) => rm(root, { recursive: true, force: true })));
});

describeDriver('fs', async () => {
  const root = await mkdtemp(join(tmpdir(), 'blobs-'));
  roots.push(root);
  return openFsBlobs(root);
});
