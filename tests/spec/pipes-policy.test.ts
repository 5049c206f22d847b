/** A pipe has the policy of every share: plans, agents and their grants, caps, passcodes, the audit record (interface chapters: Pipes, Policy, Transfer plan and creation). */
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { follow, makePipe, readFrom, sendAll, sendTo } from '../support/pipes.ts';
import { forge, sha256Of } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must } = exchange;

let session: string;
let reader: Agent;
beforeAll(async () => {
  session = await exchange.signIn();
  reader = await exchange.makeAgent(session);
});

const live = (fields: object = {}) => exchange.plan({ filename: 'planned.log', mimeType: 'text/plain', release: 'live', ...fields }, session);
const withPlan = ({ plan }: { plan: string }) => ({ headers: { 'x-transfer-plan': plan } });

describe('a plan with release live', () => {
  test('says where its pipe is made, and makes it once', async () => {
    const planned = await live({ maxUses: 2, ttl: 600 });
    expect(planned).toMatchObject({ lane: 'pipe', fallback: [], release: { mode: 'open', maxUses: 2, ttl: 600 }, upload: { method: 'POST', url: `${exchange.baseUrl}/api/pipe`, headers: { 'X-Transfer-Plan': planned.plan } } });
    const { method, url, headers } = planned.upload;
    const answers = await Promise.all(Array.from({ length: 4 }, () => call(url, { method, headers: { 'x-transfer-plan': headers['X-Transfer-Plan']! } })));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expectRefusal(await call(url, { json: { ttl: 300 }, ...withPlan(planned) }), 409, 'plan_already_used');
    const pipe = answers[0]!.json;
    await sendAll(exchange, pipe, 'as planned');
    expect((await call(pipe.downloadUrl)).headers.get('content-disposition')).toContain('planned.log');
  });

  test('is narrowed by the request, never widened', async () => {
    const planned = await live({ maxUses: 5, ttl: 600, allowedAgentIds: [reader.agentId, 'another'] });
    for (const [fields, code] of [[{ ttl: 601 }, 'plan_widened'], [{ maxUses: 6 }, 'plan_widened'], [{ authMode: 'open' }, 'plan_widened'], [{ allowedAgentIds: ['third'] }, 'plan_widened'], [{ filename: 'other' }, 'plan_mismatch'], [{ mimeType: 'a/b' }, 'plan_mismatch']] as const) {
      expectRefusal(await call('/api/pipe', { json: fields, ...withPlan(planned) }), 403, code);
    }
    const pipe = await makePipe(exchange, { maxUses: 1, allowedAgentIds: [reader.agentId], filename: 'planned.log' }, withPlan(planned));
    expect((await must(`/api/share/${pipe.shareId}`, { bearer: reader.key })).json.policy).toMatchObject({ maxUses: 1, allowedAgentIds: [reader.agentId] });
  });

  test('makes nothing but a pipe, and no other plan makes one', async () => {
    const planned = await live({ size: 4 });
    expectRefusal(await call('/api/upload/multipart/init', { json: { filename: 'planned.log', mimeType: 'text/plain', size: 4 }, ...withPlan(planned) }), 403, 'plan_mismatch');
    expectRefusal(await call(`/api/lane/single/${planned.planId}`, { method: 'PUT', body: 'four', ...withPlan(planned) }), 403, 'plan_mismatch');
    for (const other of [{ lane: 'single' }, { lane: 'multipart' }, { release: 'complete' }]) {
      const plan = await exchange.plan({ filename: 'a', size: 4, ...other });
      expect(plan.lane).not.toBe('pipe');
      expectRefusal(await call('/api/pipe', { method: 'POST', ...withPlan(plan) }), 403, 'plan_mismatch');
    }
    expectRefusal(await call('/api/pipe', { method: 'POST', headers: { 'x-transfer-plan': forge(planned, (claims) => { claims.maxBytes = 1e12; }) } }), 403, 'plan_mismatch');
  });

  test('leaves no choice of lane and part size', async () => {
    for (const [field, value] of [['lane', 'single'], ['lane', 'multipart'], ['partSize', 16 * 1_024 ** 2], ['release', 'late']] as const) {
      expectRefusal(await call('/api/transfer-plan', { json: { filename: 'a', release: 'live', [field]: value } }), 400, 'invalid_request', field);
    }
  });

  test('that promises a digest fails the pipe when the bytes have another', async () => {
    const sha256 = sha256Of(Buffer.from('promised'));
    const good = await makePipe(exchange, {}, withPlan(await live({ sha256 })));
    expect((await sendAll(exchange, good, 'promised')).status).toBe(200);
    const bad = await makePipe(exchange, {}, withPlan(await live({ sha256 })));
    const sender = sendTo(bad);
    await sender.write('something else');
    const follower = await follow(bad);
    expect(follower.headers).not.toHaveProperty('repr-digest');
    expect(await sender.end()).toMatchObject({ status: 400, json: { code: 'digest_mismatch' } });
    expect((await follower.rest()).isWhole).toBe(false);
  });
});

describe('a live pipe for agents', () => {
  test('is read by those on its list, each time with a grant', async () => {
    const pipe = await makePipe(exchange, { policyTemplateId: 'agent-only', allowedAgentIds: [reader.agentId] }, { bearer: session });
    const sender = sendTo(pipe);
    await sender.write('for one');
    expectRefusal(await call(pipe.downloadUrl), 401, 'grant_required');
    const other = await exchange.makeAgent(session);
    expectRefusal(await call('/api/agent/grants', { json: { shareId: pipe.shareId }, bearer: other.key }), 403, 'agent_not_allowed_for_share');
    const headers = { 'x-access-grant': await exchange.grant(pipe.shareId, reader.key) };
    const following = await follow(pipe, { headers });
    expectRefusal(await call(pipe.downloadUrl, { headers }), 409, 'grant_already_used');
    await sender.end(' reader');
    expect((await following.rest()).bytes.toString()).toBe('for one reader');
    const foreign = await makePipe(exchange, { allowedAgentIds: [reader.agentId] }, { bearer: session });
    expectRefusal(await call(pipe.downloadUrl, { headers: { 'x-access-grant': await exchange.grant(foreign.shareId, reader.key) } }), 403, 'invalid_grant');
  });
});

describe('a cap on a live pipe', () => {
  test.each([1, 7])('of %i lets exactly so many of forty racing readers in, from its beginning to its end', async (maxUses) => {
    const pipe = await makePipe(exchange, { maxUses });
    const racing = Array.from({ length: 40 }, () => readFrom(pipe.downloadUrl));
    const sender = sendTo(pipe);
    await sender.write('capped ');
    const readers = await Promise.all(racing);
    await sender.end('bytes');
    const read = await Promise.all(readers.map(async (each) => ({ status: each.status, ...(await each.rest()) })));
    const served = read.filter(({ status }) => status === 200);
    expect(served.map(({ bytes, isWhole }) => [bytes.toString(), isWhole])).toEqual(Array(maxUses).fill(['capped bytes', true]));
    expect(read.filter(({ status }) => status === 410)).toHaveLength(40 - maxUses);
  });

  test('is spent by a reader that leaves early, and not by one that leaves before the first byte', async () => {
    const pipe = await makePipe(exchange, { maxUses: 2 });
    const leaving = new AbortController();
    const waiting = call(pipe.downloadUrl, { signal: leaving.signal }).catch(() => 'left');
    const sender = sendTo(pipe);
    // By now the one that waits has spent a use; it is given back once it is seen to leave.
    expect((await call(`/api/share/${pipe.shareId}`)).status).toBe(200);
    leaving.abort();
    expect(await waiting).toBe('left');
    await sender.write('some');
    const early = await follow(pipe);
    early.leave();
    let last = await readFrom(pipe.downloadUrl);
    for (let tries = 0; last.status === 410 && tries < 50; tries += 1) last = await readFrom(pipe.downloadUrl);
    expect(last.status).toBe(200);
    await sender.end();
    expect((await last.rest()).isWhole).toBe(true);
    expectRefusal(await call(pipe.downloadUrl), 410, 'share_use_limit_exceeded');
  });
});

test('a live pipe with a passcode wants it of every reader', async () => {
  const pipe = await makePipe(exchange, { passcode: 'open sesame' });
  const sender = sendTo(pipe);
  await sender.write('locked');
  expectRefusal(await call(pipe.downloadUrl), 401, 'passcode_required');
  const reading = await follow(pipe, { headers: { 'x-share-passcode': 'open sesame' } });
  await sender.end();
  expect(await reading.rest()).toEqual({ bytes: Buffer.from('locked'), isWhole: true });
});

test('everything that happens to a pipe is on its owner\'s record, with the target pipe', async () => {
  const pipe = await makePipe(exchange, {}, { bearer: session });
  const sender = sendTo(pipe);
  await sender.write('recorded');
  const reading = await follow(pipe);
  await sender.end();
  await reading.rest();
  await must(`/api/dl/${pipe.id}`, { method: 'DELETE', bearer: session });
  const events = await exchange.events(session, { targetId: pipe.id }, 5);
  expect(events.map(({ eventType, targetType }) => `${eventType as string} ${targetType as string}`).sort()).toEqual([
    'transfer.deleted pipe', 'transfer.fetched pipe', 'transfer.stored pipe', 'upload.completed pipe', 'upload.initialized pipe',
  ]);
  expect(events.find(({ eventType }) => eventType === 'transfer.stored')).toMatchObject({ data: { size: 8, lane: 'pipe' }, shareId: pipe.shareId });
  expect(await exchange.events(session, { targetId: pipe.shareId, eventType: 'share.created' })).toHaveLength(1);
});

test('the page of a pipe says that its bytes may still come, and shows no size', async () => {
  const pipe = await makePipe(exchange, { filename: 'growing.log' });
  const { status, text } = await must(`/s/${pipe.shareId}`);
  expect(status).toBe(200);
  expect(text).toContain('growing.log');
  expect(text).toContain('may still be writing');
  expect(text).not.toContain('<dt>Size</dt>');
});
