/** Replies may be lost after the change was made: whoever asks again gets the first answer, and there is one change. */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { figure, sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { reconcileAudit } from '../support/reconcile-audit.ts';
import { makeActors } from '../support/storm.ts';
import { partBytes, persist, type Actors } from '../support/steps.ts';
import { type Call, type Reply } from '../support/wire.ts';

const operations = figure(200, 1_000);
const clients = 10;
/** Operations at the same time; each has ten clients. */
const width = 4;

let stack: FaultStack;
let end: () => Promise<void>;
let actors: Actors;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack());
  actors = await makeActors(stack);
});
afterAll(async () => end());

/** What the clients of an operation were told, and what a changed request was told. */
interface Told {
  readonly answers: unknown[];
  readonly changed: Reply;
}

describe('operations whose replies are lost', () => {
  test('a plan and its single-lane upload: one share, one answer', { timeout: 1_200_000 }, async () => {
    await holdAll(operations / 2, async (operationId) => {
      const bytes = randomBytes(1_000);
      const body = { filename: 'once.bin', size: bytes.length };
      return ask(operationId, '/api/transfer-plan', { bearer: actors.session, json: body }, { ...body, filename: 'twice.bin' }, async (planned) => {
        const { method, url, headers } = planned.json.upload;
        const stored = await untilAnswered(new URL(url).pathname, { method, headers, body: bytes });
        expect(stored.status).toBe(201);
        return stored.json;
      });
    });
  });

  test('a multipart upload: one upload, one share, one answer', { timeout: 1_200_000 }, async () => {
    const size = partBytes;
    await holdAll(operations / 4, async (operationId) => {
      const body = { filename: 'once.bin', size };
      return ask(operationId, '/api/upload/multipart/init', { bearer: actors.session, json: body }, { ...body, size: size + 1 }, async (begun) => {
        const { uploadId } = begun.json;
        const part = await untilAnswered(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`, { bearer: actors.session, body: Buffer.alloc(size) });
        // Another client may have completed it meanwhile.
        expect([200, 409]).toContain(part.status);
        const complete = await untilAnswered('/api/upload/multipart/complete', { bearer: actors.session, json: { uploadId } });
        expect(complete.status).toBe(201);
        return { uploadId, ...complete.json };
      });
    });
  });

  test('an agent key and a grant: made once, shown again', { timeout: 1_200_000 }, async () => {
    const { agent, session } = actors;
    const shared = await storeGranted();
    await holdAll(operations / 8, (operationId) =>
      ask(operationId, '/api/agent/keys', { bearer: session, json: { agentId: agent.agentId } }, { agentId: 'another' }, async ({ json }) => json));
    await holdAll(operations / 8, (operationId) =>
      ask(operationId, '/api/agent/grants', { bearer: agent.key, json: { shareId: shared } }, { shareId: 'shr_another' }, async ({ json }) => json));
    const { json } = await actors.wire.send(`/api/agent/keys?agentId=${agent.agentId}`, { bearer: session });
    expect(json.count).toBe(operations / 8 + 1);
  });

  test('each change was made and recorded once', { timeout: 300_000 }, async () => {
    expect(await reconcileAudit(actors, stack)).toEqual([]);
    const [{ transfers }] = await stack.query<{ transfers: number }>('select count(*)::int as transfers from storage.transfers') as [{ transfers: number }];
    expect(transfers).toBe(operations / 2 + operations / 4 + 1);
  });
});

/** Runs operations a few at a time. Each must have told all of its clients the same, and refused the changed request. */
async function holdAll(count: number, run: (operationId: string) => Promise<Told>): Promise<void> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await Promise.all(Array.from({ length: width }, async () => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      const { answers, changed } = await run(id);
      expect(answers).toHaveLength(clients);
      for (const answer of answers) expect(answer).toEqual(answers[0]);
      expect(changed).toMatchObject({ status: 422, json: { code: 'idempotency_key_reused' } });
    }
  }));
}

/** Ten clients send the same request and go on from its answer; then one sends another request under the same id. */
async function ask(operationId: string, path: string, call: Call, changedBody: object, goOn: (first: Reply) => Promise<unknown>): Promise<Told> {
  const headers = { 'idempotency-key': operationId };
  const firsts = await Promise.all(Array.from({ length: clients }, () => untilAnswered(path, { ...call, headers })));
  for (const first of firsts) {
    expect(first.status).toBe(201);
    expect(first.json).toEqual(firsts[0]!.json);
  }
  const answers = await Promise.all(firsts.map(goOn));
  const changed = await untilAnswered(path, { ...call, json: changedBody, headers });
  return { answers, changed };
}

/** Breaks the connection at some moment of the exchange, twice, and then waits for the answer. */
async function untilAnswered(path: string, call: Call): Promise<Reply> {
  for (let cuts = 0; cuts < 2; cuts += 1) {
    const cut = new AbortController();
    const timer = setTimeout(() => cut.abort(), Math.random() * 40);
    await actors.wire.send(path, { ...call, signal: cut.signal });
    clearTimeout(timer);
    await sleep(Math.random() * 5);
  }
  return persist(path, () => actors.wire.send(path, call));
}

async function storeGranted(): Promise<string> {
  const { wire, session, agent } = actors;
  const planned = await wire.send('/api/transfer-plan', { bearer: session, json: { filename: 'granted.bin', size: 3, authMode: 'agent', allowedAgentIds: [agent.agentId] } });
  const { method, url, headers } = planned.json.upload;
  return (await wire.send(new URL(url).pathname, { method, headers, body: Buffer.from('abc') })).json.shareId as string;
}
