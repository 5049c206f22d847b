/** More at once than can be served: what is too much is refused early and whole, and nothing of it stays. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt, type Exchange } from '../support/exchange.ts';
import { figure, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { openRaw, type RawConnection } from '../support/raw-http.ts';
import { fetchStored, upload, type Actors } from '../support/steps.ts';
import { brokenPromises, makeActors, unbroken } from '../support/storm.ts';
import { openWire, type Reply } from '../support/wire.ts';

const requests = 12;
const transfers = 6;
const crowd = figure(200, 2_000);
const services = { REQUEST_LIMIT: '6' };

let stack: FaultStack;
let exchange: Exchange;
let session: string;
let end: () => Promise<void>;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack({ gateway: { REQUEST_LIMIT: String(requests), TRANSFER_LIMIT: String(transfers) }, policy: services, storage: services }));
  exchange = exchangeAt(stack.baseUrl, stack.owner);
  session = await exchange.signIn();
});
afterAll(async () => end());

interface Held {
  readonly status: number;
  /** Sends the body, and answers the status of the answer. */
  finish(): Promise<number>;
}

/** Sends the head of a request, and learns whether its body is wanted: 100, or a refusal. */
async function hold(path: string, { method, headers, body }: { method: string; headers: Record<string, string>; body: string }): Promise<Held & { readonly headers: Readonly<Record<string, string>> }> {
  const connection: RawConnection = await openRaw(stack.baseUrl);
  const fields = { host: 'localhost', expect: '100-continue', 'content-length': String(body.length), ...headers };
  connection.send(`${method} ${path} HTTP/1.1\r\n${Object.entries(fields).map((field) => field.join(': ')).join('\r\n')}\r\n\r\n`);
  const [first] = await connection.responses(1);
  return {
    ...first!,
    async finish() {
      connection.send(body);
      const [, last] = await connection.responses(2);
      connection.close();
      return last!.status;
    },
  };
}

const text = 'a body that is held back';

async function holdUpload() {
  const { upload: { url, method, headers } } = await exchange.plan({ filename: 'held.txt', mimeType: 'text/plain', size: text.length, lane: 'single' }, session);
  return hold(new URL(url).pathname, { method, headers: { ...headers, 'content-type': 'text/plain' }, body: text });
}

const planBody = JSON.stringify({ filename: 'held.txt', mimeType: 'text/plain', size: 5 });
const holdPlan = () => hold('/api/transfer-plan', { method: 'POST', headers: { 'content-type': 'application/json' }, body: planBody });

async function inTurn<T>(count: number, work: () => Promise<T>): Promise<T[]> {
  const done: T[] = [];
  for (let turn = 0; turn < count; turn += 1) done.push(await work());
  return done;
}

describe('a gateway that has all it takes', () => {
  test('refuses a transfer before its body, answers small requests meanwhile, and finishes what it has', async () => {
    const held = await inTurn(transfers, holdUpload);
    expect(held.map(({ status }) => status)).toEqual(held.map(() => 100));
    expect(await holdUpload()).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    const fetched = await exchange.call('/api/dl/missing?share_id=missing');
    expect([fetched.status, fetched.json.code]).toEqual([503, 'overloaded']);
    expect((await exchange.call('/api/transfer-plan', { json: JSON.parse(planBody) })).status).toBe(201);
    for (const { finish } of held) expect(await finish()).toBe(201);
    expect((await exchange.upload(text, {}, session)).id).toBeDefined();
  });

  test('refuses a small request before its body, and says all the same that it lives and is ready', async () => {
    const held = await inTurn(requests, holdPlan);
    expect(held.map(({ status }) => status)).toEqual(held.map(() => 100));
    expect(await holdPlan()).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    const unknown = await exchange.call('/api/nowhere');
    expect([unknown.status, unknown.json.code, unknown.headers.get('retry-after')]).toEqual([503, 'overloaded', '1']);
    expect([(await exchange.call('/healthz')).status, (await exchange.call('/readyz')).status]).toEqual([200, 200]);
    // One after the other: the service behind takes fewer at once.
    for (const { finish } of held) expect(await finish()).toBe(201);
    expect((await exchange.call('/api/nowhere')).status).toBe(404);
  });

  test('a request that its caller broke off leaves its place', async () => {
    for (const held of await inTurn(2 * requests, async () => {
      const connection = await openRaw(stack.baseUrl);
      connection.send(`POST /api/transfer-plan HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n`);
      const [first] = await connection.responses(1);
      connection.close();
      // Waited for: the other side hears of it later.
      while ((await exchange.call('/api/nowhere')).status !== 404) { /* its place is not free yet */ }
      return first!;
    })) expect(held.status).toBe(100);
  });
});

/** Writes down every answer of 5xx. */
async function makeCrowd(): Promise<{ actors: Actors; refusals: Reply[] }> {
  const refusals: Reply[] = [];
  const wire = openWire(stack.baseUrl);
  const { send } = wire;
  const noting = Object.assign(wire, {
    async send(...call: Parameters<typeof send>) {
      const reply = await send(...call);
      if (!reply.whole || reply.status >= 500) refusals.push(reply);
      return reply;
    },
  });
  return { actors: await makeActors(stack, noting), refusals };
}

describe('a crowd', () => {
  test('that is too large is told to come again, and leaves nothing half-done', { timeout: 600_000 }, async () => {
    const { actors, refusals } = await makeCrowd();
    await upload(actors, { kind: 'capped', lane: 'single', size: 50_000, maxUses: crowd });
    const capped = actors.ledger.stored[0]!;
    const uploads = Array.from({ length: crowd }, (_, index) => upload(actors, { kind: 'open', lane: index % 10 === 0 ? 'multipart' : 'single', size: index % 2 === 0 ? 80_000 : 4_096 }));
    await Promise.all([...uploads, ...Array.from({ length: crowd }, () => fetchStored(actors, capped))]);
    expect(refusals.length).toBeGreaterThan(0);
    expect(refusals.filter(({ json, headers }) => json?.code !== 'overloaded' || !headers['retry-after']).map(({ status, bytes }) => `${status} ${bytes}`)).toEqual([]);
    expect(actors.ledger.stored).toHaveLength(crowd + 1);
    const before = refusals.length;
    await inTurn(20, () => upload(actors, { kind: 'open', lane: 'single', size: 4_096 }));
    await fetchStored(actors, capped);
    expect(refusals.length).toBe(before);
    expect(await brokenPromises(actors, stack)).toEqual(unbroken);
    expect(stack.crashes).toEqual([]);
  });
});
