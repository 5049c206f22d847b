/** The root keys of agents: made, listed and revoked by their owner (interface chapter: Authentication). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';

const { call, must, signIn, makeAgent, makeOwner, upload, grant } = sharedExchange();

let session: string;
beforeAll(async () => { session = await signIn(); });

const newAgentId = () => `agent-${randomUUID()}`;
const make = (json: unknown, headers: Record<string, string> = {}) => call('/api/agent/keys', { json, bearer: session, headers });
const revoke = (keyId: string) => call(`/api/agent/keys/${keyId}`, { method: 'DELETE', bearer: session });
const keysOf = async (agentId: string) => (await must(`/api/agent/keys?agentId=${agentId}`, { bearer: session })).json;
const authenticate = (key: string) => call('/api/agent/auth', { method: 'POST', bearer: key });

describe('POST /api/agent/keys', () => {
  test('makes a key for an agent and shows it', async () => {
    const agentId = newAgentId();
    const answer = await make({ agentId, name: 'build server' });
    expect(answer.status).toBe(201);
    const { keyId, key } = answer.json;
    expect(answer.json).toEqual({ agentId, keyId: expect.stringMatching(/^[A-Za-z0-9]+$/), key: expect.stringMatching(/^agk_[A-Za-z0-9]+\.[A-Za-z0-9_-]{43}$/) });
    expect(key).toMatch(new RegExp(`^agk_${keyId}\\.`));
    expect((await authenticate(key)).json.agentId).toBe(agentId);
  });

  test('an agent without an id gets one that begins with agt_, body or no body', async () => {
    const empty = await make({});
    const none = await call('/api/agent/keys', { method: 'POST', bearer: session });
    for (const answer of [empty, none]) {
      expect(answer.status).toBe(201);
      expect(answer.json.agentId).toMatch(/^agt_[A-Za-z0-9]+$/);
    }
    expect(none.json.agentId).not.toBe(empty.json.agentId);
  });

  test('an agent may hold several keys, and each works', async () => {
    const agentId = newAgentId();
    const made = [await makeAgent(session, agentId), await makeAgent(session, agentId), await makeAgent(session, agentId)];
    expect(new Set(made.map(({ key }) => key)).size).toBe(3);
    for (const { key } of made) expect((await authenticate(key)).json.agentId).toBe(agentId);
    expect((await keysOf(agentId)).count).toBe(3);
  });

  test.each([
    ['one character', randomUUID().slice(0, 1)], ['128 characters', `${randomUUID()}${'x'.repeat(92)}`], ['every kind of character', `Az09._:-${randomUUID()}`],
    ['a path upwards', '..'], ['the name of a property', '__proto__'], ['a number', '0'],
  ])('an agent id of %s is good', async (_title, agentId) => {
    const answer = await make({ agentId });
    expect([answer.status, answer.json.agentId]).toEqual([201, agentId]);
    expect((await keysOf(agentId)).keys.map(({ keyId }: { keyId: string }) => keyId)).toContain(answer.json.keyId);
  });

  test.each([
    ['an empty one', ''], ['129 characters', 'x'.repeat(129)], ['a space', 'a b'], ['a slash', 'a/b'], ['a comma', 'a,b'], ['an umlaut', 'ä'], ['a line end', 'a\n'],
    ['U+0000', 'a\u0000'], ['a lone surrogate', '\ud800'], ['a number', 5], ['null', null], ['a list', ['a']],
  ])('an agent id of %s answers invalid_request', async (_title, agentId) => {
    expectRefusal(await make({ agentId }), 400, 'invalid_request', 'agentId');
  });

  test.each([['121 characters', 'x'.repeat(121)], ['nothing', ''], ['U+0000', 'a\u0000'], ['a lone surrogate', '\udc00x']])('a name of %s answers invalid_request', async (_title, name) => {
    expectRefusal(await make({ name }), 400, 'invalid_request', 'name');
  });

  test('the same Idempotency-Key and request shows the same key again and makes no second one', async () => {
    const agentId = newAgentId();
    const headers = { 'idempotency-key': randomUUID() };
    const answers = await Promise.all(Array.from({ length: 8 }, () => make({ agentId }, headers)));
    answers.push(await make({ agentId }, headers));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, answers.map(({ text }) => text).join('\n')).toBe(1);
    expect(answers[0]!.status).toBe(201);
    expect((await keysOf(agentId)).count).toBe(1);
  });

  test('the same Idempotency-Key with another request answers idempotency_key_reused', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    expect((await make({ agentId: newAgentId() }, headers)).status).toBe(201);
    expectRefusal(await make({ agentId: newAgentId() }, headers), 422, 'idempotency_key_reused');
  });

  test('operationId in the body does the same as the header, and may not differ from it', async () => {
    const operationId = randomUUID();
    const first = await make({ operationId });
    expect(first.status).toBe(201);
    expect((await make({ operationId })).json).toEqual(first.json);
    expect((await make({}, { 'idempotency-key': operationId })).json).toEqual(first.json);
    expectRefusal(await make({ operationId }, { 'idempotency-key': randomUUID() }), 400, 'invalid_request', 'operationId');
  });

  test.each([['empty', ''], ['of 256 characters', 'x'.repeat(256)], ['with a space', 'a b']])('an operationId that is %s answers invalid_request', async (_title, operationId) => {
    expectRefusal(await make({ operationId }), 400, 'invalid_request', 'operationId');
  });

  test('an agent id of another owner answers agent_id_taken, and its keys are as good as none', async () => {
    const { agentId, keyId } = await makeAgent(session);
    const other = await makeOwner(session);
    const taken = await call('/api/agent/keys', { bearer: other.session, json: { agentId } });
    expect([taken.status, taken.json.code]).toEqual([409, 'agent_id_taken']);
    const revoked = await call(`/api/agent/keys/${keyId}`, { method: 'DELETE', bearer: other.session });
    expect([revoked.status, revoked.json.code]).toEqual([404, 'key_not_found']);
    expect((await must('/api/agent/keys', { bearer: other.session })).json.keys).toEqual([]);
  });
});

describe('GET /api/agent/keys', () => {
  test('lists keys newest first, with everything but the key', async () => {
    const agentId = newAgentId();
    const older = (await make({ agentId, name: 'older' })).json;
    const newer = (await make({ agentId })).json;
    await revoke(older.keyId);
    const answer = await call(`/api/agent/keys?agentId=${agentId}`, { bearer: session });
    expect(answer.status).toBe(200);
    const createdAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(answer.json).toEqual({
      count: 2,
      keys: [
        { agentId, keyId: newer.keyId, name: null, createdAt, revokedAt: null },
        { agentId, keyId: older.keyId, name: 'older', createdAt, revokedAt: createdAt },
      ],
    });
    for (const { key } of [older, newer]) expect(answer.text).not.toContain(key.split('.')[1]);
  });

  test.each([['1', 1], ['2', 2], ['200', 3]])('limit %s is good', async (limit, count) => {
    const agentId = newAgentId();
    for (let made = 0; made < 3; made += 1) await makeAgent(session, agentId);
    const { json } = await must(`/api/agent/keys?agentId=${agentId}&limit=${limit}`, { bearer: session });
    expect([json.count, json.keys.length]).toEqual([count, count]);
  });

  test.each(['0', '201', 'abc', '-1', '1.5', '1e2', '', '%201', '+1', '0x10', '1000000000', '9'.repeat(400), '%EF%BC%91'])('limit %s answers invalid_request', async (limit) => {
    expectRefusal(await call(`/api/agent/keys?limit=${limit}`, { bearer: session }), 400, 'invalid_request', 'limit');
  });

  test('a limit given twice, an unknown parameter and a bad agentId are named', async () => {
    expectRefusal(await call('/api/agent/keys?limit=1&limit=2', { bearer: session }), 400, 'invalid_request', 'limit');
    expectRefusal(await call('/api/agent/keys?page=2', { bearer: session }), 400, 'invalid_request', 'page');
    expectRefusal(await call('/api/agent/keys?agentId=a%2Fb', { bearer: session }), 400, 'invalid_request', 'agentId');
  });
});

describe('DELETE /api/agent/keys/{keyId}', () => {
  test('revokes a key, and answers the same when it is revoked again', async () => {
    const { agentId, keyId, key } = await makeAgent(session);
    const first = await revoke(keyId);
    expect(first.status).toBe(200);
    expect(first.json).toEqual({ key: { agentId, keyId, name: null, createdAt: expect.any(String), revokedAt: expect.any(String) } });
    expect((await revoke(keyId)).json).toEqual(first.json);
    expectRefusal(await authenticate(key), 401, 'invalid_agent_credential');
  });

  test('an unknown key answers key_not_found', async () => {
    expectRefusal(await revoke('0000000000000000'), 404, 'key_not_found');
  });

  test.each(['agk_abc', 'a.b', `${'x'.repeat(65)}`, '%00', '%20'])('%s is no key id and answers invalid_request', async (keyId) => {
    expectRefusal(await revoke(keyId), 400, 'invalid_request', 'keyId');
  });

  test('a revoked key ends its access tokens and grants no more at once; the other keys of the agent go on', async () => {
    const agent = await makeAgent(session);
    const second = await makeAgent(session, agent.agentId);
    const [first, other] = [(await authenticate(agent.key)).json.accessToken, (await authenticate(second.key)).json.accessToken];
    const { shareId } = await upload('for one agent', { authMode: 'agent', allowedAgentIds: [agent.agentId] }, session);
    const resolve = (bearer: string) => call(`/api/share/${shareId}`, { bearer });
    expect((await resolve(first)).status).toBe(200);
    await revoke(agent.keyId);
    expectRefusal(await resolve(first), 401, 'invalid_agent_credential');
    expectRefusal(await resolve(agent.key), 401, 'invalid_agent_credential');
    expectRefusal(await call('/api/agent/grants', { json: { shareId }, bearer: agent.key }), 401, 'invalid_agent_credential');
    expect((await resolve(other)).status).toBe(200);
    expect(await grant(shareId, second.key)).toMatch(/^agrt_/);
  });
});
