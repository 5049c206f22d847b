/** Grants: one agent's permission to fetch one target once (interface chapters: Grant response, States and transitions). */
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must, upload, grant } = exchange;
let session: string;
let reader: Agent;
let other: Agent;

beforeAll(async () => {
  session = await exchange.signIn();
  reader = await exchange.makeAgent(session);
  other = await exchange.makeAgent(session);
});

const ask = (shareId: unknown, bearer?: string) => call('/api/agent/grants', { bearer, json: { shareId } });
const fetchWith = (token: string, { id }: Pick<Uploaded, 'id'>, headers: Record<string, string> = {}) => call(`/api/dl/${id}`, { headers: { 'X-Access-Grant': token, ...headers } });
const forReaders = (content = 'secret', fields: object = {}) => upload(content, { allowedAgentIds: [reader.agentId, other.agentId], ...fields }, session);

describe('POST /api/agent/grants', () => {
  test('answers the grant, every field in its shape', async () => {
    const { id, shareId } = await forReaders();
    const { status, json } = await ask(shareId, reader.key);
    expect(status).toBe(201);
    expect(json).toEqual({ accessToken: expect.stringMatching(/^agrt_\S+$/), targetType: 'file', targetId: id, expiresAt: expect.stringMatching(/Z$/) });
    const secondsLeft = (Date.parse(json.expiresAt) - Date.now()) / 1_000;
    expect(secondsLeft).toBeGreaterThan(60);
    expect(secondsLeft).toBeLessThanOrEqual(300);
    expect((await fetchWith(json.accessToken, { id })).text).toBe('secret');
  });

  test('each grant is another', async () => {
    const { shareId } = await forReaders();
    expect(await grant(shareId, reader.key)).not.toBe(await grant(shareId, reader.key));
  });

  test('needs the key of an agent', async () => {
    const { shareId } = await forReaders();
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: reader.key })).json;
    expectRefusal(await ask(shareId), 401, 'agent_auth_required');
    for (const bearer of [accessToken, session, 'garbage', `${reader.key}x`, reader.key.toUpperCase(), `agk_nobody.${'x'.repeat(43)}`] as string[]) {
      expectRefusal(await ask(shareId, bearer), 401, 'invalid_agent_credential');
    }
    expectRefusal(await call('/api/agent/grants', { json: { shareId }, headers: { authorization: reader.key } }), 401, 'invalid_agent_credential');
  });

  test('a revoked key gets none', async () => {
    const agent = await exchange.makeAgent(session);
    const { shareId } = await upload('x', { allowedAgentIds: [agent.agentId] });
    await must(`/api/agent/keys/${agent.keyId}`, { method: 'DELETE', bearer: session });
    expectRefusal(await ask(shareId, agent.key), 401, 'invalid_agent_credential');
  });

  test('an agent that is not on the allow list gets none, and the owner learns of it', async () => {
    const { shareId } = await upload('x', { allowedAgentIds: [other.agentId] }, session);
    expectRefusal(await ask(shareId, reader.key), 403, 'agent_not_allowed_for_share');
    expect((await exchange.events(session, { eventType: 'grant.denied', shareId }))[0])
      .toMatchObject({ agentId: reader.agentId, outcome: 'denied', code: 'agent_not_allowed_for_share' });
  });

  test('the agent that made a share is not on its list by that', async () => {
    const { shareId } = await upload('x', { allowedAgentIds: [other.agentId] }, reader.key);
    expectRefusal(await ask(shareId, reader.key), 403, 'agent_not_allowed_for_share');
  });

  test('there is none for an absent share, nor for an open one', async () => {
    const { shareId } = await upload('x');
    expectRefusal(await ask('shr_doesnotexist', reader.key), 404, 'share_not_found_or_expired');
    expectRefusal(await ask(shareId, reader.key), 400, 'invalid_request', 'shareId');
  });

  test('the body is checked by name', async () => {
    const { id, shareId } = await forReaders();
    for (const wrong of [undefined, null, 7, '', 'x', id, [shareId], `${shareId} `]) expectRefusal(await ask(wrong, reader.key), 400, 'invalid_request', 'shareId');
    expectRefusal(await call('/api/agent/grants', { bearer: reader.key, json: { shareId, ttl: 10 } }), 400, 'invalid_request', 'ttl');
    expectRefusal(await call('/api/agent/grants', { bearer: reader.key, method: 'POST' }), 400, 'invalid_request');
  });

  test('issuing and redeeming are in the audit record', async () => {
    const stored = await forReaders();
    await fetchWith(await grant(stored.shareId, reader.key), stored);
    for (const eventType of ['grant.issued', 'grant.redeemed']) {
      expect(await exchange.events(session, { eventType, shareId: stored.shareId })).toMatchObject([{ agentId: reader.agentId, targetType: 'grant', outcome: 'allowed' }]);
    }
  });
});

describe('a grant', () => {
  test('works once', async () => {
    const stored = await forReaders();
    const token = await grant(stored.shareId, reader.key);
    expect((await fetchWith(token, stored)).status).toBe(200);
    for (const _time of [1, 2]) expectRefusal(await fetchWith(token, stored), 409, 'grant_already_used');
    expect((await fetchWith(await grant(stored.shareId, reader.key), stored)).text).toBe('secret');
  });

  test('works once for twenty who race for it', async () => {
    const stored = await forReaders('x'.repeat(50_000));
    const token = await grant(stored.shareId, reader.key);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => fetchWith(token, stored, index % 2 ? { Range: 'bytes=0-9' } : {})));
    const won = answers.filter(({ status }) => status < 300);
    expect(won).toHaveLength(1);
    for (const lost of answers.filter((answer) => !won.includes(answer))) expectRefusal(lost, 409, 'grant_already_used');
  });

  test('is for its own transfer and share only, and a wrong try leaves it unused', async () => {
    const [one, two] = [await forReaders('one'), await forReaders('two')];
    const open = await upload('open');
    const token = await grant(one.shareId, reader.key);
    expectRefusal(await fetchWith(token, two), 403, 'invalid_grant');
    expectRefusal(await fetchWith(token, open), 403, 'invalid_grant');
    expectRefusal(await fetchWith(token, { id: `${one.id}?share_id=${two.shareId}` }), 403, 'invalid_grant');
    expectRefusal(await fetchWith(token, { id: `${open.id}?share_id=${open.shareId}` }), 403, 'invalid_grant');
    expect((await fetchWith(token, { id: `${one.id}?share_id=${one.shareId}` })).text).toBe('one');
  });

  test('that was changed in any way is not valid, and the true one stays unused', async () => {
    const stored = await forReaders();
    const token = await grant(stored.shareId, reader.key);
    const flip = (at: number) => token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
    const [body, mac] = token.split('.') as [string, string];
    const claims = JSON.parse(Buffer.from(body.slice('agrt_'.length), 'base64url').toString('utf8')) as Record<string, unknown>;
    const reworded = `agrt_${Buffer.from(JSON.stringify({ ...claims, exp: 9_999_999_999 })).toString('base64url')}.${mac}`;
    const wrong = [
      flip(6), flip(token.length - 10), `${token}x`, token.slice(0, -1), `${body}.`, body, reworded, token.toUpperCase(), token.toLowerCase(), 'agrt_', 'agrt_.', 'agrt_a.b',
      `${token.slice(0, 20)} ${token.slice(20)}`, token.replace('.', '. '), `"${token}"`, `Bearer ${token}`, `${token}, ${token}`, token.slice('agrt_'.length), 'garbage', '', `agrt_${'x'.repeat(2_000)}`,
    ];
    for (const one of wrong) expectRefusal(await fetchWith(one, stored), 403, 'invalid_grant');
    expect((await fetchWith(` ${token} `, stored)).status).toBe(200);
  });

  test('belongs in its header: in the query it does not count', async () => {
    const { id, shareId } = await forReaders();
    const token = await grant(shareId, reader.key);
    for (const query of [`share_id=${shareId}&X-Access-Grant=${token}`, `grant=${token}`, `access_grant=${token}&share_id=${shareId}`]) {
      expectRefusal(await call(`/api/dl/${id}?${query}`), 401, 'grant_required');
    }
    expectRefusal(await call(`/api/dl/${id}`, { bearer: token }), 401, 'grant_required');
    expect((await fetchWith(token, { id })).status).toBe(200);
  });

  test('is required whatever else is sent', async () => {
    const { id, shareId } = await forReaders();
    for (const [query, bearer] of [['', undefined], [`?share_id=${shareId}`, undefined], ['', reader.key], [`?share_id=${shareId}`, reader.key], [`?share_id=${shareId}`, session]] as const) {
      expectRefusal(await call(`/api/dl/${id}${query}`, { bearer }), 401, 'grant_required');
    }
  });

  test('is not spent by HEAD, 304, 412, 416 or a prefetch', async () => {
    const stored = await forReaders('0123456789');
    const token = await grant(stored.shareId, reader.key);
    const { headers } = await call(`/api/dl/${stored.id}`, { method: 'GET', headers: { 'X-Access-Grant': token, 'If-None-Match': '*' } });
    const etag = headers.get('etag')!;
    await fetch(`${exchange.baseUrl}/api/dl/${stored.id}`, { method: 'HEAD', headers: { 'X-Access-Grant': token } });
    expect((await fetchWith(token, stored, { 'If-None-Match': etag })).status).toBe(304);
    expectRefusal(await fetchWith(token, stored, { 'If-Match': '"other"' }), 412, 'precondition_failed');
    expectRefusal(await fetchWith(token, stored, { Range: 'bytes=10-' }), 416, 'range_not_satisfiable');
    expectRefusal(await fetchWith(token, stored, { 'Sec-Purpose': 'prefetch' }), 403, 'forbidden');
    expect((await fetchWith(token, stored, { Range: 'bytes=2-4' })).text).toBe('234');
    expectRefusal(await fetchWith(token, stored), 409, 'grant_already_used');
  });

  test('ends with its transfer', async () => {
    const stored = await forReaders();
    const token = await grant(stored.shareId, reader.key);
    await must(`/api/dl/${stored.id}`, { method: 'DELETE', headers: { 'X-Delete-Token': stored.deleteToken } });
    expectRefusal(await fetchWith(token, stored), 404, 'share_not_found_or_expired');
    expectRefusal(await ask(stored.shareId, reader.key), 404, 'share_not_found_or_expired');
  });
});

describe('an agent share with a cap', () => {
  test('counts fetches over all agents, and then neither grants nor fetches', async () => {
    const stored = await forReaders('x', { maxUses: 3 });
    const spare = await grant(stored.shareId, other.key);
    const remaining = [];
    for (const { key } of [reader, other, reader]) {
      const answer = await fetchWith(await grant(stored.shareId, key), stored);
      remaining.push(answer.headers.get('x-remaining-uses'));
    }
    expect(remaining).toEqual(['2', '1', '0']);
    for (const { key } of [reader, other]) expectRefusal(await ask(stored.shareId, key), 410, 'share_use_limit_exceeded');
    expectRefusal(await fetchWith(spare, stored), 410, 'share_use_limit_exceeded');
    expect(await exchange.events(session, { eventType: 'share.exhausted', shareId: stored.shareId })).toHaveLength(1);
  });

  test('a grant reserves no use: the first fetch gets the last one', async () => {
    const stored = await forReaders('x', { maxUses: 1 });
    const tokens = await Promise.all(Array.from({ length: 10 }, (_, index) => grant(stored.shareId, index % 2 ? reader.key : other.key)));
    const answers = await Promise.all(tokens.map((token) => fetchWith(token, stored)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) expectRefusal(answer, 410, 'share_use_limit_exceeded');
  });

  test('a use that was refused is not counted', async () => {
    const stored = await forReaders('x', { maxUses: 2 });
    const used = await grant(stored.shareId, reader.key);
    await fetchWith(used, stored);
    expectRefusal(await fetchWith(used, stored), 409, 'grant_already_used');
    expectRefusal(await fetchWith('agrt_a.b', stored), 403, 'invalid_grant');
    expect((await fetchWith(await grant(stored.shareId, other.key), stored)).headers.get('x-remaining-uses')).toBe('0');
  });
});
