/** Memory stays bounded while large files pass through, and while slow readers hold on. */
import { createHash } from 'node:crypto';
import { get, request, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { figure, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { makeActors } from '../support/storm.ts';
import type { Actors } from '../support/steps.ts';
import { watchMemory } from '../support/watch-memory.ts';

const MiB = 1_024 ** 2;
const size = figure(1, 5) * 1_024 * MiB;
const partSize = 64 * MiB;
const slowReaders = figure(50, 200);
const bound = 512 * MiB;

/** A large file is this block over and over, each time with another number in front. */
const block = Buffer.alloc(MiB, 'memory stays flat');

let stack: FaultStack;
let end: () => Promise<void>;
let actors: Actors;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack());
  actors = await makeActors(stack);
});
afterAll(async () => end());

function* bytesOf(from: number, to: number): Generator<Buffer> {
  for (let at = from; at < to; at += MiB) {
    const one = Buffer.from(block);
    one.writeBigUInt64BE(BigInt(at));
    yield one;
  }
}

const expected = () => {
  const hash = createHash('sha256');
  for (const one of bytesOf(0, size)) hash.update(one);
  return hash.digest('hex');
};

async function plan(lane: string) {
  const fields = { filename: 'large.bin', size, lane, ...(lane === 'multipart' && { partSize }) };
  return (await actors.wire.send('/api/transfer-plan', { bearer: actors.session, json: fields })).json as {
    plan: string; upload: { method: string; url: string; headers: Record<string, string> };
  };
}

/** Streams a stretch of the file as a body. Answers the JSON of the answer. */
function stream(path: string, method: string, headers: Record<string, string>, from: number, to: number): Promise<any> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, stack.baseUrl), { method, headers: { ...headers, 'content-length': String(to - from) } }, (response) => {
      response.toArray().then((chunks) => resolve(JSON.parse(Buffer.concat(chunks).toString('utf8'))), reject);
    });
    sent.on('error', reject);
    Readable.from(bytesOf(from, to)).pipe(sent);
  });
}

async function uploadSingle(): Promise<string> {
  const { upload } = await plan('single');
  const { id, shareId } = await stream(new URL(upload.url).pathname, upload.method, upload.headers, 0, size);
  return `/api/dl/${id}?share_id=${shareId}`;
}

async function uploadMultipart(): Promise<string> {
  const headers = { 'x-transfer-plan': (await plan('multipart')).plan };
  const { json: { uploadId } } = await actors.wire.send('/api/upload/multipart/init', { headers, json: { filename: 'large.bin', size } });
  const numbers = Array.from({ length: size / partSize }, (_each, index) => index);
  await Promise.all(Array.from({ length: 4 }, async () => {
    for (let index = numbers.pop(); index !== undefined; index = numbers.pop()) {
      await stream(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=${index + 1}`, 'POST', headers, index * partSize, (index + 1) * partSize);
    }
  }));
  const { json: { id, shareId } } = await actors.wire.send('/api/upload/multipart/complete', { headers, json: { uploadId } });
  return `/api/dl/${id}?share_id=${shareId}`;
}

function open(path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => get(new URL(path, stack.baseUrl), resolve).on('error', reject));
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of await open(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

describe.runIf(process.platform === 'linux')('memory', () => {
  test('large files by both lanes, with slow readers alongside, stay below 512 MiB a process', { timeout: 1_200_000 }, async () => {
    const stop = watchMemory(stack);
    const path = await uploadSingle();
    // They take the first bytes and then nothing: what the exchange holds for each must be little.
    const slow = await Promise.all(Array.from({ length: slowReaders }, () => open(path)));
    for (const reader of slow) reader.once('readable', () => reader.read(1));
    const [second, first] = await Promise.all([uploadMultipart(), digestOf(path)]);
    expect(await digestOf(second)).toBe(first);
    expect(first).toBe(expected());
    for (const reader of slow) reader.destroy();
    const peaks = await stop();
    for (const peak of Object.values(peaks)) expect(peak).toBeLessThan(bound);
  });
});
