/** Rate limits (interface chapter: Rate limits): each caller may send so many requests of each kind, over all gateways together. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt, type Agent, type Answer, type Exchange, type Request } from '../support/exchange.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { startSecondGateway, type SecondGateway } from '../support/second-gateway.ts';

/** Windows are long enough to outlast a burst on a busy machine, but for the one class whose window is waited for. */
const limits = { create: 30, bytes: 23, fetch: 37, read: 40, auth: 25, page: 20 };
const window = 600;
const short = { limit: 5, window: 2 };
const alone = { limit: 30, window: 4 };
const times = 2;

const settings = {
  RATE_LIMITS: 'on', RATE_LIMIT_KNOWN_TIMES: String(times), TRUSTED_PROXIES: '127.0.0.1,::1,::ffff:127.0.0.1',
  ...Object.fromEntries(Object.entries(limits).map(([name, limit]) => [`RATE_LIMIT_${name.toUpperCase()}`, `${limit}/${window}`])),
};

let own: OwnStack;
let second: SecondGateway;
let session: string;
let agents: Agent[];
let nextAddress = 0;

/** An address that no test has used; the proxy of this stack is this test. */
const someAddress = () => `198.18.${nextAddress >> 8}.${nextAddress++ & 255}`;
const from = (address: string, more: Record<string, string> = {}) => ({ 'x-forwarded-for': address, ...more });

beforeAll(async () => {
  own = await startOwnStack({ gateway: settings });
  second = await startSecondGateway(own.stack, settings);
  session = await own.exchange.signIn();
  agents = [];
  for (let made = 0; made < 6; made += 1) agents.push(await own.exchange.makeAgent(session));
});
afterAll(async () => {
  await second?.stop();
  await own?.remove();
});

/** Sends the same request at once, by turns to each exchange. */
function burst(count: number, path: string, request: Request, exchanges: readonly Exchange[] = [own.exchange]): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => exchanges[index % exchanges.length]!.call(path, request)));
}

const served = (answers: readonly Answer[]) => answers.filter(({ status }) => status !== 429).length;

/** The headers as the draft has them: one item of a structured-field list, a string with integer parameters. */
function readLimit(answer: Answer) {
  const [, name, q, w] = /^"(\w+)";q=(\d+);w=(\d+)$/.exec(answer.headers.get('ratelimit-policy') ?? '') ?? [];
  const [, same, r, t] = /^"(\w+)";r=(\d+);t=(\d+)$/.exec(answer.headers.get('ratelimit') ?? '') ?? [];
  expect(same).toBe(name);
  return { name, quota: Number(q), window: Number(w), remaining: Number(r), reset: Number(t) };
}

const json = { 'content-type': 'application/json' };

/** Class -> requests that count against it. */
const requests: Record<keyof typeof limits, [path: string, request: Request]> = {
  create: ['/api/transfer-plan', { method: 'POST', headers: json, body: '{"filename":"a"}' }],
  bytes: ['/api/lane/single/pln_none', { method: 'PUT', body: 'x' }],
  fetch: ['/api/dl/trf_none?share_id=shr_none', {}],
  read: ['/api/share/shr_none', {}],
  auth: ['/api/agent/auth', { method: 'POST' }],
  page: ['/docs', {}],
};

describe('rate limits', () => {
  test.each(Object.entries(requests))('%s: of 200 requests at once just the limit is served, the rest answers rate_limited', async (name, [path, request]) => {
    const limit = limits[name as keyof typeof limits];
    const answers = await burst(200, path, { ...request, headers: from(someAddress(), request.headers) });
    expect(served(answers)).toBe(limit);
    for (const answer of answers) {
      expect(readLimit(answer)).toMatchObject({ name, quota: limit, window });
      const { remaining, reset } = readLimit(answer);
      expect(remaining).toBeLessThan(limit);
      expect(reset).toBeGreaterThan(0);
      expect(reset).toBeLessThanOrEqual(window);
    }
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.headers.get('content-type')).toContain('application/problem+json');
    expect(refused.json).toMatchObject({ code: 'rate_limited', status: 429, retryable: true });
    expect(readLimit(refused).remaining).toBe(0);
    expect(Number(refused.headers.get('retry-after'))).toBe(readLimit(refused).reset);
  });

  test('HEAD and OPTIONS count like GET, and so does what no route serves', async () => {
    const head = from(someAddress());
    await burst(20, '/api/dl/trf_none', { method: 'HEAD', headers: head });
    const after = await own.exchange.call('/api/dl/trf_none?share_id=shr_none', { headers: head });
    expect(readLimit(after)).toMatchObject({ name: 'fetch', remaining: limits.fetch - 21 });
    const unknown = from(someAddress());
    const answers = [...await burst(15, '/nothing', { headers: unknown }), ...await burst(15, '/docs', { method: 'OPTIONS', headers: unknown })];
    expect(served(answers)).toBe(limits.page);
  });

  test('bytes carry the headers, too', async () => {
    const sent = await own.exchange.upload('content', {}, session);
    for (const method of ['GET', 'HEAD']) {
      const answer = await own.exchange.call(sent.downloadUrl, { method, headers: from(someAddress()) });
      expect(answer.status).toBe(200);
      expect(readLimit(answer)).toMatchObject({ name: 'fetch', remaining: limits.fetch - 1 });
    }
  });

  test('health and assets are free', async () => {
    const headers = from(someAddress());
    const answers = [...await burst(60, '/healthz', { headers }), ...await burst(60, '/assets/page.css', { headers })];
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(answers[0]!.headers.has('ratelimit')).toBe(false);
  });

  test('another caller is not hurt: another address, another kind of request, an agent at the same address', async () => {
    const [path, request] = requests.read;
    const address = someAddress();
    await burst(limits.read + 10, path, { headers: from(address) });
    expect((await own.exchange.call(path, { headers: from(address) })).status).toBe(429);
    expect((await own.exchange.call(path, { headers: from(someAddress()) })).status).toBe(404);
    expect((await own.exchange.call('/docs', { headers: from(address) })).status).toBe(200);
    const asAgent = await own.exchange.call(path, { ...request, bearer: agents[0]!.key, headers: from(address) });
    expect(asAgent.status).toBe(404);
    expect(readLimit(asAgent)).toMatchObject({ quota: limits.read * times, remaining: limits.read * times - 1 });
  });

  test('an IPv6 caller is its /64', async () => {
    const [path] = requests.read;
    const answers = await Promise.all(Array.from({ length: limits.read + 20 }, (_, host) => own.exchange.call(path, { headers: from(`2001:db8:1:2::${host.toString(16)}`) })));
    expect(served(answers)).toBe(limits.read);
    expect((await own.exchange.call(path, { headers: from('2001:db8:1:3::1') })).status).toBe(404);
  });

  test('a made-up credential counts for its address: it spends nothing of the holder’s, and brings nothing of its own', async () => {
    const [path] = requests.read;
    const { keyId, key } = agents[1]!;
    const address = someAddress();
    const forged = Array.from({ length: 150 }, (_, index) => `agk_${index % 2 ? keyId : `made${index}`}.${'x'.repeat(43 - String(index).length)}${index}`);
    const answers = await Promise.all(forged.map((bearer) => own.exchange.call(path, { bearer, headers: from(address) })));
    expect(served(answers)).toBe(limits.read);
    for (const at of [address, someAddress()]) {
      expect((await own.exchange.call(path, { bearer: key, headers: from(at) })).status).toBe(404);
    }
    const last = await own.exchange.call(path, { bearer: key, headers: from(address) });
    expect(readLimit(last).remaining).toBe(limits.read * times - 3);
  });

  test('an agent is one caller wherever it calls from and whichever good credential it brings', async () => {
    const [path] = requests.read;
    const { key } = agents[2]!;
    const { accessToken } = (await own.exchange.must('/api/agent/auth', { method: 'POST', bearer: key })).json;
    const answers = await Promise.all(Array.from({ length: 200 }, (_, index) =>
      own.exchange.call(path, { bearer: index % 2 ? key : accessToken as string, headers: from(someAddress()) })));
    expect(served(answers)).toBe(limits.read * times);
  });

  test('an owner is one caller in the browser and in scripts', async () => {
    const { must, call } = own.exchange;
    const made = await own.exchange.makeOwner(session);
    const cookie = `aex_session=${made.session}`;
    await must('/api/owner/session', { headers: { cookie, ...from(someAddress()) } });
    const answer = await call('/api/owner/session', { bearer: made.session, headers: from(someAddress()) });
    expect(readLimit(answer)).toMatchObject({ name: 'read', quota: limits.read * times, remaining: limits.read * times - 2 });
  });

  test.each(['an address', 'an agent'])('two gateways together serve %s no more than the limit', async (kind) => {
    const [path] = requests.read;
    const exchanges = [own.exchange, exchangeAt(second.baseUrl, own.exchange.owner)];
    const isAgent = kind === 'an agent';
    const limit = isAgent ? limits.read * times : limits.read;
    const answers = await burst(300, path, { headers: from(someAddress()), bearer: isAgent ? agents[3]!.key : undefined }, exchanges);
    const count = served(answers);
    expect(count).toBeLessThanOrEqual(limit);
    // A lease that one of them holds is not the other's: of these bursts all of it is asked for.
    expect(count).toBeGreaterThan(limit * 0.8);
  });
});

describe('a window', () => {
  let brief: OwnStack;
  beforeAll(async () => {
    brief = await startOwnStack({ gateway: { RATE_LIMITS: 'on', RATE_LIMIT_READ: `${short.limit}/${short.window}`, RATE_LIMIT_PAGE: 'off', RATE_LIMIT_FETCH: `${alone.limit}/${alone.window}` } });
  });
  afterAll(() => brief?.remove());

  test('that has passed lets the caller in again after Retry-After, and never twice the limit at its border', async () => {
    const { call } = brief.exchange;
    const times: number[] = [];
    const end = Date.now() + 9_000;
    let refused = 0;
    while (Date.now() < end) {
      const before = Date.now();
      const answer = await call('/api/share/shr_none');
      if (answer.status === 429) refused += 1;
      else times.push(before);
      if (answer.status === 429 && times.length <= short.limit) {
        const seconds = Number(answer.headers.get('retry-after'));
        expect(seconds).toBeLessThanOrEqual(short.window + 1);
        await sleep(seconds * 1_000);
        expect((await call('/api/share/shr_none')).status).toBe(404);
        times.push(Date.now());
      }
      await sleep(20);
    }
    expect(refused).toBeGreaterThan(0);
    // Within a fifth of a window at most the limit, wherever it lies; in all what the limit allows.
    const most = Math.max(...times.map((start) => times.filter((time) => time >= start && time < start + short.window * 200).length));
    expect(most).toBeLessThanOrEqual(short.limit + 1);
    expect(times.length).toBeLessThanOrEqual(short.limit * (9 / short.window + 1));
    expect(times.length).toBeGreaterThan(short.limit * 2);
  });

  test('of a limit that is off is not counted', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => brief.exchange.call('/docs')));
    expect(answers.every(({ status, headers }) => status === 200 && !headers.has('ratelimit'))).toBe(true);
  });

  test('is counted by each gateway alone while the counter is away: the limit holds, and nobody is refused for the outage', async () => {
    const { call } = brief.exchange;
    await brief.stack.services['policy']!.stop();
    const statuses = (await burst(100, '/api/dl/trf_none', { method: 'HEAD' }, [brief.exchange])).map(({ status }) => status);
    expect(statuses.filter((status) => status === 404)).toHaveLength(alone.limit);
    expect(statuses.filter((status) => status === 429)).toHaveLength(100 - alone.limit);
    await brief.stack.services['policy']!.start();
    await sleep(alone.window * 1_000);
    expect((await call('/api/dl/trf_none', { method: 'HEAD' })).status).toBe(404);
  });
});
