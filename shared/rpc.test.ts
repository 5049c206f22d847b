/** Requests over a real nats-server: what crosses, what does not, and how long anybody waits. */
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { attachedBytes, defineContracts, type Caller } from './contract.ts';
import { fail } from './errors.ts';
import { makeMetrics } from './metrics.ts';
import { connectBus, serve, type Bus } from './rpc.ts';

const context = { requestId: 'req_test', traceparent: '' };
const input = z.strictObject({ text: z.string() });
const base = { service: 'audit', summary: '', accepts: [], input, output: z.strictObject({ text: z.string() }), errors: [] } as const;
/** Served under names that no service has. */
const contracts = defineContracts({
  testEcho: base,
  testRejects: base,
  testRefuses: base,
  testAnswersWrong: base,
  testSlow: { ...base, deadlineMs: 200 },
  testAbsent: base,
  testLate: base,
  testReplicated: base,
  testOwner: { ...base, accepts: ['owner_session'], required: 'owner_auth_required' },
});
const { testAbsent, testLate, testReplicated, ...served } = contracts;

let bus: Bus;
/** Ends the slow requests that nobody waits for any more. */
const releases: (() => void)[] = [];
const releaseAll = () => releases.splice(0).forEach((release) => release());

const parts = (served: Bus) => ({
  bus: served, log: pino({ level: 'silent' }), metrics: makeMetrics('test'), limit: 2,
  identify: async (): Promise<Caller> => ({ type: 'owner', ownerId: 'own_1', sessionId: 's' }),
});

beforeAll(async () => {
  bus = await connectBus(process.env['AEX_TEST_NATS_URL']!, 'test', pino({ level: 'silent' }));
  serve({
    ...parts(bus), contracts: served,
    handlers: {
      testEcho: async ({ text }, { bytes }) => (bytes ? { text, [attachedBytes]: bytes } : { text }),
      testRejects: async () => { throw new Error('a secret of the database'); },
      testRefuses: async () => { throw fail('grant_already_used', { detail: 'why' }); },
      testAnswersWrong: async () => ({ text: 5 }) as never,
      testSlow: () => new Promise<{ text: string }>((resolve) => { releases.push(() => resolve({ text: '' })); }),
      testOwner: async (_input, { caller }) => ({ text: caller.type }),
    },
  });
  await bus.connection.flush();
});
afterAll(() => bus.close());

describe('a request', () => {
  test('carries JSON and bytes both ways', async () => {
    const bytes = Buffer.from([0, 255, 10, 13]);
    const answer = await bus.call(contracts.testEcho, { text: 'ü' }, context, bytes);
    expect(answer.text).toBe('ü');
    expect(answer[attachedBytes]).toEqual(bytes);
  });

  test('a bad input is refused by field, an unknown one by name', async () => {
    await expect(bus.callRaw(contracts.testEcho, { text: 5, more: 1 }, context))
      .rejects.toMatchObject({ code: 'invalid_request', details: { errors: expect.arrayContaining([expect.objectContaining({ path: 'text' }), { path: 'more', message: 'unknown field' }]) } });
  });

  test('an unexpected error crosses as its code alone', async () => {
    const error = await bus.call(contracts.testRejects, { text: '' }, context).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'internal' });
    expect(JSON.stringify(error) + String(error)).not.toContain('secret');
  });

  test('an expected failure crosses with its details', async () => {
    await expect(bus.call(contracts.testRefuses, { text: '' }, context)).rejects.toMatchObject({ code: 'grant_already_used', details: { detail: 'why' } });
  });

  test('an output that breaks the contract is our fault, not the caller’s answer', async () => {
    await expect(bus.call(contracts.testAnswersWrong, { text: '' }, context)).rejects.toMatchObject({ code: 'internal' });
  });

  test('a credential is asked for where the contract needs one, and must be of its kind', async () => {
    await expect(bus.call(contracts.testOwner, { text: '' }, context)).rejects.toMatchObject({ code: 'owner_auth_required' });
    await expect(bus.call(contracts.testOwner, { text: '' }, { ...context, credential: { kind: 'agent_key', keyId: 'k', secretHash: 'h' } })).rejects.toMatchObject({ code: 'invalid_owner_credential' });
    expect(await bus.call(contracts.testOwner, { text: '' }, { ...context, credential: { kind: 'owner_session', sessionId: 's', secretHash: 'h' } })).toEqual({ text: 'owner' });
  });

  test('nobody to answer is service_unavailable at once', async () => {
    await expect(bus.call(testAbsent, { text: '' }, context)).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  test('one that nobody took is sent once more', async () => {
    const answered = bus.call(testLate, { text: 'late' }, context);
    serve({ ...parts(bus), contracts: { testLate }, handlers: { testLate: async ({ text }) => ({ text }) } });
    expect(await answered).toEqual({ text: 'late' });
  });

  test('one that was delivered to a replica that stops is answered by it, and the next by another', async () => {
    const answersAs = (name: string, gate: Promise<void>) => serve({ ...parts(bus), limit: 100, contracts: { testReplicated }, handlers: { testReplicated: async () => { await gate; return { text: name }; } } });
    let open = () => {};
    const leaving = answersAs('leaving', new Promise<void>((resolve) => { open = resolve; }));
    const taken = Array.from({ length: 20 }, () => bus.call(testReplicated, { text: '' }, context));
    await bus.connection.flush();
    const left = leaving.drain();
    answersAs('staying', Promise.resolve());
    const after = Array.from({ length: 20 }, () => bus.call(testReplicated, { text: '' }, context));
    expect((await Promise.all(after)).map(({ text }) => text)).toEqual(after.map(() => 'staying'));
    open();
    expect((await Promise.all(taken)).map(({ text }) => text)).toEqual(taken.map(() => 'leaving'));
    await left;
  });

  test('no answer in time is deadline_exceeded, and a passed deadline is not even sent', async () => {
    await expect(bus.call(contracts.testSlow, { text: '' }, context)).rejects.toMatchObject({ code: 'deadline_exceeded' });
    await expect(bus.call(contracts.testEcho, { text: '' }, { ...context, deadline: Date.now() - 1 })).rejects.toMatchObject({ code: 'deadline_exceeded' });
    releaseAll();
  });

  test('more requests at once than the limit are overloaded', async () => {
    const slow = [1, 2, 3].map(() => bus.call(contracts.testSlow, { text: '' }, context).then(() => 'answered', (error: { code: string }) => error.code));
    expect((await Promise.all(slow)).filter((code) => code === 'overloaded')).toHaveLength(1);
    releaseAll();
  });

  test('one that is larger than the server takes is payload_too_large', async () => {
    await expect(bus.call(contracts.testEcho, { text: '' }, context, Buffer.alloc(8 * 1024 ** 2))).rejects.toMatchObject({ code: 'payload_too_large' });
  });
});
