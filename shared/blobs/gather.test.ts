import { PassThrough, Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { gather } from './gather.ts';

const idleMs = 1_000;
const sizeOf = (batch: Buffer[] | undefined) => batch?.reduce((sum, chunk) => sum + chunk.length, 0);

test('a batch stays full when the measure grows before it is taken', async () => {
  let batchBytes = 100;
  const source = Readable.from([Buffer.alloc(100), Buffer.alloc(50)], { objectMode: false, highWaterMark: 100 });
  const gathering = gather(source, { batchBytes: () => batchBytes, idleMs });
  await setTimeout(20);
  batchBytes = 1_000;
  expect(sizeOf(await gathering.next())).toBe(100);
  expect(sizeOf(await gathering.next())).toBe(50);
  expect(await gathering.next()).toBeUndefined();
  gathering.stop();
});

test('a source is held back while its batch is not taken', async () => {
  const source = new PassThrough({ highWaterMark: 10 });
  const gathering = gather(source, { batchBytes: () => 20, idleMs });
  let written = 0;
  while (source.write(Buffer.alloc(10)) && written < 100) {
    written += 10;
    await setTimeout(1);
  }
  expect(written).toBeLessThan(60);
  expect(sizeOf(await gathering.next())).toBe(20);
  gathering.stop();
});

test('time in which the source is held back is not its idleness', async () => {
  const source = new PassThrough();
  const gathering = gather(source, { batchBytes: () => 10, idleMs: 30 });
  source.write(Buffer.alloc(10));
  await setTimeout(80);
  expect(sizeOf(await gathering.next())).toBe(10);
  await expect(gathering.next()).rejects.toMatchObject({ code: 'deadline_exceeded' });
  gathering.stop();
});

test('a source that had failed before is told of at once', async () => {
  const source = new PassThrough();
  source.on('error', () => undefined);
  source.destroy(new Error('gone'));
  await setTimeout(1);
  const gathering = gather(source, { batchBytes: () => 10, idleMs });
  await expect(gathering.next()).rejects.toThrow('gone');
  gathering.stop();
});
