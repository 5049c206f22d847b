/** How a plan binds the single lane: required, narrowed, never widened, used once (interface chapter: Transfer plan and creation). */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sharedExchange, type Answer } from '../support/exchange.ts';
import { MiB } from '../support/multipart-lane.ts';
import { chunked, forge, idsOf, singleLane } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';
import { sendHeadersOnly } from '../support/unruly-client.ts';

const exchange = sharedExchange();
const { call, must, plan } = exchange;
const put = singleLane(exchange);
const abc = Buffer.from('abc');
const large = randomBytes(100_000);

const send = (planId: string, signed?: string, body = 'abc') =>
  call(`/api/lane/single/${planId}`, { method: 'PUT', body, headers: signed === undefined ? {} : { 'X-Transfer-Plan': signed } });

describe('PUT /api/lane/single/{planId}, its plan', () => {
  test('without a plan there is no lane', async () => {
    const { planId } = await plan({ filename: 'a' });
    expectRefusal(await send(planId), 401, 'plan_required');
    expectRefusal(await send(planId, ''), 401, 'plan_required');
    expectRefusal(await send(planId, undefined, 'x'.repeat(40_000)), 401, 'plan_required');
  });

  test('the plan of another address does not fit', async () => {
    const [one, two] = [await plan({ filename: 'a' }), await plan({ filename: 'a' })];
    expectRefusal(await send(one.planId, two.plan), 403, 'plan_mismatch');
    expectRefusal(await send('pln_nobodyhasthisone', one.plan), 403, 'plan_mismatch');
    expectRefusal(await send('shr_x', one.plan), 403, 'plan_mismatch');
  });

  test('a plan that was not signed here does not fit', async () => {
    const planned = await plan({ filename: 'a', maxUses: 1 });
    const [header, payload, signature] = planned.plan.split('.') as [string, string, string];
    const unsigned = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    const swapped = signature[0] === 'A' ? 'B' : 'A';
    const forged = [
      forge(planned, (claims) => { delete claims.release.maxUses; }),
      forge(planned, (claims) => { claims.exp += 3_600; }),
      `${header}.${payload}.${swapped}${signature.slice(1)}`,
      `${header}.${payload}.`, `${unsigned}.${payload}.`, `${unsigned}.${payload}.${signature}`,
      'garbage', 'a.b.c', `${planned.plan}x`,
    ];
    for (const one of forged) expectRefusal(await send(planned.planId, one), 403, 'plan_mismatch');
    expect((await send(planned.planId, planned.plan)).status).toBe(201);
  });

  test('a refused body that is never sent is refused at once', async () => {
    const { upload } = await plan({ filename: 'a', size: 10, lane: 'single' });
    const { status, text } = await sendHeadersOnly(upload.url, { method: 'PUT', headers: { ...upload.headers, 'Content-Length': String(MiB) } });
    expect({ status, code: JSON.parse(text).code }).toEqual({ status: 403, code: 'plan_widened' });
  });

  test('more bytes than planned are a widening, whether or not they were announced', async () => {
    const planned = await plan({ filename: 'a', size: 3, lane: 'single' });
    for (const body of [Buffer.from('abcd'), chunked(Buffer.from('abcd')), large, chunked(large)]) {
      expectRefusal(await put(planned, body), 403, 'plan_widened', 'size');
    }
    expect((await put(planned, abc)).status).toBe(201);
  });

  test('a stream is bounded by the capacity of its plan', async () => {
    const { upload } = await plan({ filename: 'a' });
    const { status, text } = await sendHeadersOnly(upload.url, { method: 'PUT', headers: { ...upload.headers, 'Content-Length': String(10 * 1_024 * MiB + 1) } });
    expect({ status, code: JSON.parse(text).code }).toEqual({ status: 413, code: 'payload_too_large' });
  });
});

describe('PUT /api/lane/single/{planId}, narrowing', () => {
  const fields = { filename: 'a', size: 3, ttl: 600, maxUses: 5, allowedAgentIds: ['a1', 'a2'] };

  test('ttl, maxUses and allowedAgentIds may be narrowed', async () => {
    const reader = await exchange.makeAgent(await exchange.signIn());
    const planned = await plan({ ...fields, allowedAgentIds: ['a1', reader.agentId, 'a2'] });
    const { status, json } = await put(planned, abc, { query: `?ttl=60&maxUses=2&allowedAgentIds=a2,${reader.agentId}` });
    expect(status).toBe(201);
    expect(Date.parse(json.expiresAt)).toBeLessThanOrEqual(Date.now() + 61_000);
    const share = await must(`/api/share/${json.shareId}`, { bearer: reader.key });
    expect(share.json.policy).toMatchObject({ mode: 'agent', maxUses: 2, allowedAgentIds: ['a2', reader.agentId], expiresAt: json.expiresAt });
  });

  test('a cap may be set where the plan has none', async () => {
    const { json } = await put(await plan({ filename: 'a', size: 3 }), abc, { query: '?maxUses=1' });
    expect((await must(`/api/share/${json.shareId}`)).json.policy.maxUses).toBe(1);
  });

  test.each([
    ['ttl=601', 'ttl'], ['ttl=604801', 'ttl'], ['maxUses=6', 'maxUses'], ['allowedAgentIds=a1,a3', 'allowedAgentIds'], ['allowedAgentIds=A1', 'allowedAgentIds'],
  ])('%s widens the plan and is refused by name', async (query, field) => {
    const planned = await plan(fields);
    expectRefusal(await put(planned, abc, { query: `?${query}` }), 403, 'plan_widened', field);
    expect((await put(planned, abc)).status).toBe(201);
  });

  test('an open share does not become one for agents, nor the reverse', async () => {
    expectRefusal(await put(await plan({ filename: 'a', size: 3 }), abc, { query: '?allowedAgentIds=a1' }), 403, 'plan_widened', 'allowedAgentIds');
    expectRefusal(await put(await plan(fields), abc, { query: '?authMode=open' }), 400, 'invalid_request', 'authMode');
  });

  test.each([
    ['ttl=29', 'ttl'], ['ttl=abc', 'ttl'], ['ttl=1.5', 'ttl'], ['ttl=', 'ttl'], ['ttl=60&ttl=61', 'ttl'], ['maxUses=0', 'maxUses'], ['maxUses=-1', 'maxUses'],
    ['allowedAgentIds=', 'allowedAgentIds'], ['allowedAgentIds=a1,,a2', 'allowedAgentIds'], ['colour=red', 'colour'], ['size=1', 'size'],
  ])('%s is refused by name', async (query, field) => {
    expectRefusal(await put(await plan(fields), abc, { query: `?${query}` }), 400, 'invalid_request', field);
    expectRefusal(await put(await plan({ ...fields, size: large.length }), large, { query: `?${query}` }), 400, 'invalid_request', field);
  });
});

describe('PUT /api/lane/single/{planId}, again', () => {
  test.each([['small', abc], ['large', large]])('the same bytes have the same answer, delete token included: %s', async (_case, bytes) => {
    const planned = await plan({ filename: 'a', size: bytes.length, lane: 'single' });
    const first = await put(planned, bytes);
    expect(first.status).toBe(201);
    for (const body of [bytes, chunked(bytes)]) {
      const again = await put(planned, body);
      expect({ status: again.status, json: again.json }).toEqual({ status: 201, json: first.json });
    }
  });

  test.each([['small', abc, Buffer.from('xyz')], ['large', large, randomBytes(large.length)]])('other bytes are refused, and the first stay: %s', async (_case, bytes, others) => {
    const planned = await plan({ filename: 'a', size: bytes.length, lane: 'single' });
    const { json } = await put(planned, bytes);
    for (const body of [others, chunked(others), others.subarray(1)]) expectRefusal(await put(planned, body), 409, 'plan_already_used');
    expect((await must(json.downloadUrl)).bytes.equals(bytes)).toBe(true);
  });

  test('a plan whose transfer was deleted makes no second one', async () => {
    const planned = await plan({ filename: 'a', size: 3, lane: 'single' });
    const { json } = await put(planned, abc);
    await must(`/api/dl/${json.id}`, { method: 'DELETE', headers: { 'X-Delete-Token': json.deleteToken } });
    await put(planned, abc);
    expectRefusal(await call(json.downloadUrl), 404, 'share_not_found_or_expired');
    expectRefusal(await put(planned, Buffer.from('xyz')), 409, 'plan_already_used');
  });

  test.each([['small', abc], ['large', large]])('20 at once make one transfer and answer the same: %s', async (_case, bytes) => {
    const session = await exchange.signIn();
    const planned = await plan({ filename: 'a', size: bytes.length, lane: 'single' }, session);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => put(planned, index % 2 ? bytes : chunked(bytes))));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    const stored = await exchange.events(session, { eventType: 'transfer.stored', targetId: idsOf(planned).transferId });
    expect(stored).toHaveLength(1);
  });

  test('of two files that race under one plan, one is stored whole and the other refused', async () => {
    const contents = Array.from({ length: 10 }, () => randomBytes(large.length));
    const planned = await plan({ filename: 'a', size: large.length, lane: 'single' });
    const answers = await Promise.all(contents.map((bytes) => put(planned, bytes)));
    const winner = answers.findIndex(({ status }) => status === 201);
    const losers: Answer[] = answers.filter((_answer, index) => index !== winner);
    for (const loser of losers) expectRefusal(loser, 409, 'plan_already_used');
    expect((await must(answers[winner]!.json.downloadUrl)).bytes.equals(contents[winner]!)).toBe(true);
  });
});
