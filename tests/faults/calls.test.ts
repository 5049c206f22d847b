/** Calls between services: nobody waits for an answer that cannot come any more. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineContracts } from '../../shared/contract.ts';
import { makeLogger } from '../../shared/log.ts';
import { makeMetrics } from '../../shared/metrics.ts';
import { connectBus, serve, type Bus } from '../../shared/rpc.ts';
import { sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { becomes, makeActors } from '../support/storm.ts';
import { partBytes } from '../support/steps.ts';
import { openWire } from '../support/wire.ts';

const context = { requestId: 'req_calls', traceparent: '' };
const { work } = defineContracts({
  work: {
    service: 'audit', summary: 'Works for as long as it is told to', accepts: [],
    input: z.strictObject({ ms: z.int() }), output: z.strictObject({ done: z.boolean() }), errors: [], deadlineMs: 60_000,
  },
});

let stack: FaultStack;
let end: () => Promise<void>;
let bus: Bus;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack());
  bus = await connectBus(stack.natsUrl, 'test', makeLogger('test', 'silent'));
});
afterAll(async () => {
  await bus.close();
  await end();
});

describe('calls', () => {
  test('a long request is waited for as long as its service says that it works', async () => {
    const served = serve({
      bus, contracts: { work }, identify: async () => ({ type: 'anonymous' }), log: makeLogger('test', 'silent'), metrics: makeMetrics('test'), limit: 10,
      handlers: { work: async ({ ms }) => { await sleep(ms); return { done: true }; } },
    });
    expect(await bus.call(work, { ms: 7_000 }, context)).toEqual({ done: true });
    await served.drain();
  });

  test('a long request that nobody serves fails at once', async () => {
    const begun = Date.now();
    await expect(bus.call(work, { ms: 0 }, context)).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(Date.now() - begun).toBeLessThan(1_000);
  });

  test('calls under way end when NATS does', async () => {
    await stack.services['policy']!.kill('SIGSTOP');
    const wire = openWire(stack.baseUrl);
    const asked = wire.send('/.well-known/jwks.json');
    await sleep(200);
    const begun = Date.now();
    await stack.nats.stop('SIGKILL');
    expect((await asked).status).toBe(503);
    expect(Date.now() - begun).toBeLessThan(2_000);
    await stack.nats.start();
    await stack.services['policy']!.kill('SIGCONT');
    expect(await becomes(stack, true, 10_000)).toBe(true);
  });

  test('a completion whose service fell silent is answered in time, and made up for by the next', async () => {
    const actors = await makeActors(stack);
    const { wire, session } = actors;
    const file = { filename: 'long.bin', mimeType: 'application/octet-stream', size: partBytes };
    const begun = await wire.send('/api/upload/multipart/init', { bearer: session, json: file });
    const { uploadId } = begun.json;
    await wire.send(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`, { bearer: session, body: Buffer.alloc(partBytes) });
    const complete = () => wire.send('/api/upload/multipart/complete', { bearer: session, json: { uploadId } });
    await stack.services['storage']!.kill('SIGSTOP');
    const silent = await complete();
    await stack.services['storage']!.kill('SIGCONT');
    expect(silent).toMatchObject({ whole: true, status: 504, json: { code: 'deadline_exceeded' } });
    expect(await complete()).toMatchObject({ status: 201, json: { id: begun.json.transferId } });
    expect(wire.late).toEqual([]);
  });
});
