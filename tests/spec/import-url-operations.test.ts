/** POST /api/import-url happens once for an operation, leaves its events, and ends when its service does (interface chapters: Limits, Events). */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDnsServer, type DnsServer } from '../support/dns-server.ts';
import type { Exchange } from '../support/exchange.ts';
import { importer, startImporting } from '../support/importing.ts';
import type { OwnStack } from '../support/own-stack.ts';
import { expectRefusal } from '../support/refusals.ts';
import { behind, publicAddress, startSourceServer, type SourceServer } from '../support/source-server.ts';

const secret = `secret-${randomUUID()}`;
/** Answers that wait until the test lets them go. */
const held: ServerResponse[] = [];
let broken = true;

let dns: DnsServer;
let own: OwnStack;
let exchange: Exchange;
let source: SourceServer;
let session: string;
let send: ReturnType<typeof importer>;
beforeAll(async () => {
  dns = await startDnsServer({ 'files.test': [publicAddress] });
  source = await startSourceServer({
    changing: (_request, response) => response.end(randomUUID()),
    held: (_request, response) => void held.push(response),
    large: (_request, response) => response.end('x'.repeat(100_000)),
    mending: (_request, response) => response.writeHead(broken ? 503 : 200).end('mended'),
  });
  own = await startImporting(dns.address, { IMPORT_CONCURRENCY: '8', IMPORT_FIRST_BYTE_SECONDS: '60', IMPORT_TIMEOUT_SECONDS: '60' });
  ({ exchange } = own);
  session = await exchange.signIn();
  send = importer(exchange);
});
afterAll(async () => {
  source.close();
  dns.close();
  await own.remove();
});

const keyed = (key: string, bearer: string | undefined = session) => ({ bearer, headers: { 'idempotency-key': key } });
const countOf = (path: string) => source.requests.filter(({ url }) => url === path).length;
const eventsOf = (query: Record<string, string>, atLeast = 1) => exchange.events(session, query, atLeast);
async function whenHeld(): Promise<ServerResponse> {
  await expect.poll(() => held.length, { timeout: 10_000 }).toBeGreaterThan(0);
  return held.shift()!;
}

describe('an operation', () => {
  test('answers the same again, delete token included, without fetching again', async () => {
    const path = `/changing/${randomUUID()}`;
    const key = randomUUID();
    const first = await send(source.url(path), {}, keyed(key));
    expect(first.status).toBe(201);
    for (let times = 0; times < 3; times += 1) expect((await send(source.url(path), {}, keyed(key))).json).toEqual(first.json);
    expect((await send(source.url(path), { operationId: key }, { bearer: session })).json).toEqual(first.json);
    expect(countOf(path)).toBe(1);
    expect(await eventsOf({ eventType: 'import.completed', targetId: first.json.id })).toHaveLength(1);
  });

  test('of ten at once is fetched once; the others are told that it goes on, and then its answer', async () => {
    const path = `/held/${randomUUID()}`;
    const key = randomUUID();
    const first = send(source.url(path), {}, keyed(key));
    const response = await whenHeld();
    const again = await Promise.all(Array.from({ length: 9 }, () => send(source.url(path), {}, keyed(key))));
    for (const told of again) {
      expectRefusal(told, 409, 'operation_in_progress');
      expect([told.json.retryable, told.headers.get('retry-after')]).toEqual([true, '1']);
    }
    response.end('at last');
    const made = await first;
    expect(made.status).toBe(201);
    expect((await send(source.url(path), {}, keyed(key))).json).toEqual(made.json);
    expect(countOf(path)).toBe(1);
  });

  test.each<[string, Record<string, unknown>]>([['another url', { url: 'else' }], ['another name', { filename: 'b' }], ['another policy', { maxUses: 1 }], ['another passcode', { passcode: 'other' }]])('with %s answers idempotency_key_reused', async (_what, change) => {
    const path = `/changing/${randomUUID()}`;
    const key = randomUUID();
    expect((await send(source.url(path), { filename: 'a' }, keyed(key))).status).toBe(201);
    const { url, ...fields } = { filename: 'a', ...change } as Record<string, unknown>;
    expectRefusal(await send(source.url(url ? `${path}/other` : path), fields, keyed(key)), 422, 'idempotency_key_reused');
    expect(source.requests.filter((one) => one.url!.startsWith(path))).toHaveLength(1);
  });

  test('belongs to its caller', async () => {
    const path = `/changing/${randomUUID()}`;
    const key = randomUUID();
    const agent = await exchange.makeAgent(session);
    const made = await Promise.all([send(source.url(path), {}, keyed(key)), send(source.url(path), {}, keyed(key, agent.key)), send(source.url(path), {}, { headers: { 'idempotency-key': key } })]);
    expect(new Set(made.map(({ json }) => json.id)).size).toBe(3);
  });

  test('that failed is tried anew, under the same transfer', async () => {
    const key = randomUUID();
    expectRefusal(await send(source.url('/mending'), {}, keyed(key)), 502, 'import_upstream_failed');
    broken = false;
    const made = await send(source.url('/mending'), {}, keyed(key));
    expect([made.status, (await exchange.must(made.json.downloadUrl)).text]).toEqual([201, 'mended']);
    expect(await eventsOf({ targetId: made.json.id, eventType: 'import.failed' })).toHaveLength(1);
    expect(await eventsOf({ targetId: made.json.id, eventType: 'import.completed' })).toHaveLength(1);
  });

  test('whose transfer was deleted answers the same, and stays deleted', async () => {
    const key = randomUUID();
    const made = await send(source.url('/text'), {}, keyed(key));
    await exchange.must(`/api/dl/${made.json.id}`, { method: 'DELETE', bearer: session });
    expect((await send(source.url('/text'), {}, keyed(key))).json).toEqual(made.json);
    expect((await exchange.call(made.json.downloadUrl)).status).toBe(404);
  });
});

describe('events', () => {
  test('import.completed says what was fetched, by its host only', async () => {
    const made = await send(`http://files.test:${source.port}${behind(2, `/large/${secret}?token=${secret}`)}`, {}, { bearer: session });
    const [event] = await eventsOf({ eventType: 'import.completed', targetId: made.json.id });
    expect(event).toMatchObject({
      actor: { type: 'owner' }, targetType: 'file', shareId: made.json.shareId, outcome: 'allowed', requestId: made.headers.get('x-request-id'),
      data: { host: 'files.test', size: 100_000, hops: 2, ms: expect.any(Number) },
    });
    expect(JSON.stringify(await eventsOf({ targetId: made.json.id }))).not.toContain(secret);
    expect((await eventsOf({ eventType: 'transfer.stored', targetId: made.json.id }))[0]).toMatchObject({ data: { size: 100_000, lane: 'single' } });
  });

  test.each([
    ['http://10.1.2.3/secret?token=secret', 'import_url_blocked', 'denied', { host: '10.1.2.3', hops: 0 }],
    ['http://absent.test/secret', 'import_upstream_failed', 'error', { host: 'absent.test', hops: 0 }],
  ])('import.failed of %s says %s', async (url, code, outcome, data) => {
    const answer = await send(url, {}, { bearer: session });
    expect(answer.json.code).toBe(code);
    const requestId = answer.headers.get('x-request-id');
    const failed = async () => (await eventsOf({ eventType: 'import.failed' })).find((event) => event['requestId'] === requestId);
    await expect.poll(failed, { timeout: 10_000 }).toMatchObject({ outcome, code, targetType: 'file', shareId: null, data });
    expect(JSON.stringify(await failed())).not.toContain('secret');
  });
});

describe('places', () => {
  test('one caller has a quarter of them', async () => {
    const agent = await exchange.makeAgent(session);
    const running = [send(source.url('/held/1'), {}, { bearer: agent.key }), send(source.url('/held/2'), {}, { bearer: agent.key })];
    const responses = [await whenHeld(), await whenHeld()];
    const third = await send(source.url('/text'), {}, { bearer: agent.key });
    expectRefusal(third, 429, 'rate_limited');
    expect(third.headers.get('retry-after')).toBe('5');
    expect((await send(source.url('/text'), {}, { bearer: session })).status).toBe(201);
    for (const response of responses) response.end('done');
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([201, 201]);
    expect((await send(source.url('/text'), {}, { bearer: agent.key })).status).toBe(201);
  });
});

describe('a service that ends in the middle', () => {
  test('by being told to: the caller is told at once, and the same operation works afterwards', async () => {
    const path = `/held/${randomUUID()}`;
    const key = randomUUID();
    const running = send(source.url(path), {}, keyed(key));
    await whenHeld();
    const service = own.stack.services['importer']!;
    await service.stop();
    expectRefusal(await running, 503, 'service_unavailable');
    await service.start();
    const made = sendUntilDone(path, key);
    (await whenHeld()).end('after all');
    expect((await made).status).toBe(201);
  });

  test('by force: its lease runs out, and the same operation is run again', async () => {
    const path = `/held/${randomUUID()}`;
    const key = randomUUID();
    const running = send(source.url(path), {}, keyed(key)).catch(() => undefined);
    await whenHeld();
    const service = own.stack.services['importer']!;
    await service.kill('SIGKILL');
    await service.start();
    expectRefusal(await send(source.url(path), {}, keyed(key)), 409, 'operation_in_progress');
    const made = sendUntilDone(path, key);
    (await whenHeld()).end('after all');
    const { status, json } = await made;
    expect([status, (await exchange.must(json.downloadUrl)).text]).toEqual([201, 'after all']);
    expect(await eventsOf({ targetId: json.id, eventType: 'import.completed' })).toHaveLength(1);
    expect(countOf(path)).toBe(2);
    await running;
  });

  test('by force and for good: the record says that it failed', async () => {
    const running = send(source.url('/held/never'), {}, { bearer: session }).catch(() => undefined);
    await whenHeld();
    const before = (await eventsOf({ eventType: 'import.failed' })).length;
    const service = own.stack.services['importer']!;
    await service.kill('SIGKILL');
    await service.start();
    const [event] = await eventsOf({ eventType: 'import.failed' }, before + 1);
    expect(event).toMatchObject({ actor: { type: 'service', id: 'importer' }, outcome: 'error', code: 'service_unavailable', data: { host: publicAddress } });
    await running;
  });

  async function sendUntilDone(path: string, key: string) {
    for (;;) {
      const answer = await send(source.url(path), {}, keyed(key));
      if (answer.json.code !== 'operation_in_progress') return answer;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
});

test('anonymous callers import unless the deployment denies them to create', async () => {
  expect((await send(source.url('/text'))).status).toBe(201);
});
