/** Clients that vanish in the middle of an upload leave nothing behind. */
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { compareBlobs } from '../support/reconcile-audit.ts';
import { makeActors } from '../support/storm.ts';
import type { Actors } from '../support/steps.ts';

const MiB = 1_024 ** 2;

let stack: FaultStack;
let end: () => Promise<void>;
let actors: Actors;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack({ storage: { BLOB_IDLE_SECONDS: '2', TICKET_GRACE_SECONDS: '1', UPLOAD_TTL_SECONDS: '12' } }));
  actors = await makeActors(stack);
});
afterAll(async () => end());

/** Sends the first half of a body and breaks the connection. */
async function sendHalf(path: string, method: string, headers: Record<string, string>, size: number): Promise<void> {
  const sent = request(new URL(path, stack.baseUrl), { method, headers: { ...headers, 'content-length': String(size) } });
  sent.on('error', () => undefined);
  sent.write(Buffer.alloc(size / 2));
  await sleep(150);
  sent.destroy();
}

async function planOf(size: number, lane: string) {
  const { json } = await actors.wire.send('/api/transfer-plan', { bearer: actors.session, json: { filename: 'half.bin', size, lane } });
  return json as { plan: string; upload: { method: string; url: string; headers: Record<string, string> } };
}

async function begin(size: number): Promise<{ uploadId: string; headers: Record<string, string> }> {
  const headers = { 'x-transfer-plan': (await planOf(size, 'multipart')).plan };
  const { json } = await actors.wire.send('/api/upload/multipart/init', { headers, json: { filename: 'half.bin', size } });
  return { uploadId: json.uploadId as string, headers };
}

const partPath = (uploadId: string) => `/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`;
const countBlobs = async () => (await stack.query<{ count: number }>('select count(*)::int as count from storage.blobs'))[0]!.count;

describe('clients that vanish', () => {
  test('in the middle of single-lane uploads: their files go', async () => {
    const seen = eventually(countBlobs, (count) => count > 0, 10_000);
    await Promise.all(Array.from({ length: 10 }, async () => {
      const { upload } = await planOf(4 * MiB, 'single');
      await sendHalf(new URL(upload.url).pathname, upload.method, upload.headers, 4 * MiB);
    }));
    expect(await seen).toBeGreaterThan(0);
    expect(await compareBlobs(stack)).toEqual({ orphans: [], missing: [] });
    expect(await eventually(countBlobs, (count) => count === 0, 20_000)).toBe(0);
  });

  test('in the middle of a part: the part can be sent again, and nothing of the first attempt stays', async () => {
    const { uploadId, headers } = await begin(4 * MiB);
    for (let tries = 0; tries < 3; tries += 1) await sendHalf(partPath(uploadId), 'POST', headers, 4 * MiB);
    const bytes = Buffer.alloc(4 * MiB, 'whole');
    expect((await actors.wire.send(partPath(uploadId), { headers, body: bytes })).status).toBe(200);
    const { status, json } = await actors.wire.send('/api/upload/multipart/complete', { headers, json: { uploadId } });
    expect(status).toBe(201);
    const read = await actors.wire.send(`/api/dl/${json.id}?share_id=${json.shareId}`);
    expect(read.bytes.equals(bytes)).toBe(true);
    expect(await compareBlobs(stack)).toEqual({ orphans: [], missing: [] });
    expect(await eventually(countBlobs, (count) => count === 1, 20_000)).toBe(1);
  });

  test('for good: the upload expires and its file goes', async () => {
    const { uploadId, headers } = await begin(4 * MiB);
    await sendHalf(partPath(uploadId), 'POST', headers, 4 * MiB);
    expect(await compareBlobs(stack)).toEqual({ orphans: [], missing: [] });
    const { json } = await actors.wire.send(`/api/upload/multipart/status?uploadId=${uploadId}`, { headers });
    expect(json.state).toBe('expired');
  });
});
