/** Signing in as an owner, and the access tokens of agents (interface chapter: Authentication). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';

const exchange = sharedExchange();
const { baseUrl, owner, call, must, signIn, makeAgent, upload } = exchange;
const { origin } = new URL(baseUrl);

let session: string;
beforeAll(async () => { session = await signIn(); });

/** A new session as a browser holds it: the cookie pair, and the token it carries. */
async function browserSession(): Promise<{ cookie: string; token: string }> {
  const answer = await must('/api/owner/session', { json: owner, headers: { origin } });
  return { cookie: answer.headers.getSetCookie()[0]!.split(';')[0]!, token: answer.json.token as string };
}

describe('POST /api/owner/session', () => {
  test('the right e-mail and password open a session', async () => {
    const answer = await call('/api/owner/session', { json: owner });
    expect(answer.status).toBe(201);
    expect(answer.json).toEqual({
      owner: { id: expect.stringMatching(/^\w+$/), email: owner.email, admin: true },
      token: expect.stringMatching(/^aos_[A-Za-z0-9]+\.[A-Za-z0-9_-]{43}$/),
      expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
    expect(Date.parse(answer.json.expiresAt)).toBeGreaterThan(Date.now() + 60_000);
    expectSafeHeaders(answer.headers);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test('the e-mail is matched whatever its case', async () => {
    expect((await call('/api/owner/session', { json: { ...owner, email: owner.email.toUpperCase() } })).status).toBe(201);
  });

  test('the cookie holds the token, is HttpOnly and SameSite=Lax, is for every path and ends with the session', async () => {
    const answer = await must('/api/owner/session', { json: owner });
    const [cookie, ...others] = answer.headers.getSetCookie();
    expect(others).toEqual([]);
    const [pair, ...attributes] = cookie!.split('; ');
    expect(pair).toBe(`${origin.startsWith('https:') ? '__Host-' : ''}aex_session=${answer.json.token}`);
    const maxAge = Math.floor((Date.parse(answer.json.expiresAt) - Date.now()) / 1_000);
    const [, seconds] = /^Max-Age=(\d+)$/.exec(attributes.find((one) => one.startsWith('Max-Age'))!)!;
    expect(Math.abs(Number(seconds) - maxAge)).toBeLessThanOrEqual(60);
    expect(attributes.filter((one) => !one.startsWith('Max-Age')).sort()).toEqual(['HttpOnly', 'Path=/', 'SameSite=Lax', ...(origin.startsWith('https:') ? ['Secure'] : [])]);
  });

  test('a wrong password and an unknown e-mail get the same answer', async () => {
    const wrong = await call('/api/owner/session', { json: { ...owner, password: `${owner.password}x` } });
    const unknown = await call('/api/owner/session', { json: { email: `${randomUUID()}@example.com`, password: owner.password } });
    for (const answer of [wrong, unknown]) {
      expectRefusal(answer, 401, 'invalid_owner_credential');
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
    expect({ ...unknown.json, requestId: '' }).toEqual({ ...wrong.json, requestId: '' });
    const names = (headers: Headers) => [...headers.keys()].sort();
    expect(names(unknown.headers)).toEqual(names(wrong.headers));
  });

  test.each([
    ['no password', { email: 'a@example.com' }, 'password'],
    ['no e-mail', { password: 'x' }, 'email'],
    ['a number as password', { email: 'a@example.com', password: 12345678 }, 'password'],
    ['a password of 1,025 characters', { email: 'a@example.com', password: 'x'.repeat(1_025) }, 'password'],
    ['an e-mail with U+0000', { email: 'a\u0000@example.com', password: 'x' }, 'email'],
    ['an e-mail with a lone surrogate', { email: '\ud800@example.com', password: 'x' }, 'email'],
    ['an unknown field', { email: 'a@example.com', password: 'x', admin: true }, 'admin'],
  ])('%s answers invalid_request and does not repeat what was sent', async (_title, json, field) => {
    const answer = await call('/api/owner/session', { json });
    expectRefusal(answer, 400, 'invalid_request', field);
    expect(answer.text).not.toContain('12345678');
  });

  test('an empty password and one with U+0000 do not match', async () => {
    for (const password of ['', `${owner.password}\u0000`, '\ud800']) {
      expectRefusal(await call('/api/owner/session', { json: { ...owner, password } }), 401, 'invalid_owner_credential');
    }
  });

  test('another site cannot sign a visitor in', async () => {
    const elsewhere: Record<string, string>[] = [
      { origin: 'https://evil.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin, 'sec-fetch-site': 'cross-site' },
    ];
    for (const headers of elsewhere) {
      const answer = await call('/api/owner/session', { json: owner, headers });
      expectRefusal(answer, 403, 'forbidden_origin');
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
  });
});

describe('GET /api/owner/session', () => {
  test('says who is signed in, for the cookie and for the token, and shows no token', async () => {
    const { cookie, token } = await browserSession();
    const byCookie = await call('/api/owner/session', { headers: { cookie } });
    const byToken = await call('/api/owner/session', { bearer: token });
    expect(byCookie.status).toBe(200);
    expect(byCookie.json).toEqual({ owner: { id: expect.any(String), email: owner.email, admin: true }, expiresAt: expect.any(String) });
    expect(byToken.json).toEqual(byCookie.json);
    expect(byCookie.text).not.toContain('aos_');
  });

  test('the cookie is found among others and must be right', async () => {
    const { cookie } = await browserSession();
    expect((await call('/api/owner/session', { headers: { cookie: `a=b; ${cookie}; c=d` } })).status).toBe(200);
    expectRefusal(await call('/api/owner/session', { headers: { cookie: 'a=b' } }), 401, 'owner_auth_required');
    expectRefusal(await call('/api/owner/session', { headers: { cookie: `${cookie}x` } }), 401, 'invalid_owner_credential');
    expectRefusal(await call('/api/owner/session', { headers: { cookie: `x${cookie}` } }), 401, 'owner_auth_required');
  });
});

describe('the session cookie on requests that change something', () => {
  const refused: [string, Record<string, string>][] = [
    ['no Origin', {}],
    ['the Origin of another site', { origin: 'https://evil.example' }],
    ['Origin null', { origin: 'null' }],
    ['an Origin that begins like ours', { origin: `${origin}.evil.example` }],
    ['our host on another port', { origin: `${new URL(baseUrl).protocol}//${new URL(baseUrl).hostname}:1` }],
    ['our Origin with a path', { origin: `${origin}/` }],
    ['Sec-Fetch-Site cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['Sec-Fetch-Site same-site', { 'sec-fetch-site': 'same-site' }],
    ['Sec-Fetch-Site none', { 'sec-fetch-site': 'none' }],
    ['our Origin with Sec-Fetch-Site cross-site', { origin, 'sec-fetch-site': 'cross-site' }],
  ];
  test.each(refused)('%s answers forbidden_origin, and nothing happens', async (_title, headers) => {
    const { cookie, token } = await browserSession();
    const agentId = `agent-${randomUUID()}`;
    const requests = [
      { path: '/api/agent/keys', method: 'POST', json: { agentId } },
      { path: '/api/agent/keys/abc', method: 'DELETE' },
      { path: '/api/transfer-plan', method: 'POST', json: { filename: 'a.txt', size: 1 } },
      { path: '/api/upload/multipart/init', method: 'POST', json: { filename: 'a.txt', size: 1 } },
      { path: '/api/dl/trf_abc', method: 'DELETE' },
      { path: '/api/owner/session', method: 'DELETE' },
    ];
    for (const { path, ...request } of requests) {
      expectRefusal(await call(path, { ...request, headers: { ...headers, cookie } }), 403, 'forbidden_origin');
    }
    expect((await call('/api/owner/session', { bearer: token })).status).toBe(200);
    expect((await must(`/api/agent/keys?agentId=${agentId}`, { bearer: token })).json.count).toBe(0);
  });

  test.each([['our Origin', { origin }], ['Sec-Fetch-Site same-origin', { 'sec-fetch-site': 'same-origin' }]])('%s is let through', async (_title, headers) => {
    const { cookie } = await browserSession();
    const answer = await call('/api/agent/keys', { json: {}, headers: { ...headers, cookie } });
    expect(answer.status).toBe(201);
  });

  test('the token as Bearer needs no Origin, since no browser sends it by itself', async () => {
    expect((await call('/api/agent/keys', { json: {}, bearer: session, headers: { origin: 'https://evil.example' } })).status).toBe(201);
  });
});

describe('DELETE /api/owner/session', () => {
  test.each(['cookie', 'Bearer'])('signing out by %s ends the session for cookie and Bearer, and only this one', async (kind) => {
    const { cookie, token } = await browserSession();
    const answer = await call('/api/owner/session', { method: 'DELETE', ...(kind === 'cookie' ? { headers: { cookie, origin } } : { bearer: token }) });
    expect([answer.status, answer.json]).toEqual([200, { signedOut: true }]);
    expect(answer.headers.getSetCookie().join()).toMatch(/^(__Host-)?aex_session=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax/);
    expectRefusal(await call('/api/owner/session', { headers: { cookie } }), 401, 'invalid_owner_credential');
    expectRefusal(await call('/api/owner/session', { bearer: token }), 401, 'invalid_owner_credential');
    expectRefusal(await call('/api/owner/session', { method: 'DELETE', bearer: token }), 401, 'invalid_owner_credential');
    expect((await call('/api/owner/session', { bearer: session })).status).toBe(200);
  });
});

describe('POST /api/agent/auth', () => {
  let agent: Agent;
  beforeAll(async () => { agent = await makeAgent(session); });

  test.each(['as Bearer', 'as {agentKey}'])('a key sent %s is exchanged for an access token', async (how) => {
    const answer = await call('/api/agent/auth', how === 'as Bearer' ? { method: 'POST', bearer: agent.key } : { json: { agentKey: agent.key } });
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({ accessToken: expect.stringMatching(/^aat_\S+$/), tokenType: 'Bearer', expiresAt: expect.any(String), agentId: agent.agentId });
    const lifetime = Date.parse(answer.json.expiresAt) - Date.now();
    expect(lifetime).toBeGreaterThan(14 * 60_000);
    expect(lifetime).toBeLessThanOrEqual(15 * 60_000 + 1_000);
    expect(answer.text).not.toContain(agent.key);
  });

  test('an empty JSON object beside a Bearer key is as good as no body', async () => {
    expect((await call('/api/agent/auth', { json: {}, bearer: agent.key })).status).toBe(200);
  });

  test('nothing answers agent_auth_required', async () => {
    expectRefusal(await call('/api/agent/auth', { method: 'POST' }), 401, 'agent_auth_required');
    expectRefusal(await call('/api/agent/auth', { json: {} }), 401, 'agent_auth_required');
  });

  test('an access token cannot be made into another, sent either way', async () => {
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: agent.key })).json;
    expectRefusal(await call('/api/agent/auth', { method: 'POST', bearer: accessToken }), 401, 'invalid_agent_credential');
    expectRefusal(await call('/api/agent/auth', { json: { agentKey: accessToken } }), 401, 'invalid_agent_credential');
  });

  test.each([['an unknown key', `agk_abc.${'a'.repeat(43)}`], ['the owner session', ''], ['an empty key', 'agk_'], ['spaces', '   ']])('%s as agentKey answers invalid_agent_credential', async (title, agentKey) => {
    expectRefusal(await call('/api/agent/auth', { json: { agentKey: title === 'the owner session' ? session : agentKey } }), 401, 'invalid_agent_credential');
  });

  test.each([[{ agentKey: 5 }, 'agentKey'], [{ agentKey: 'x'.repeat(257) }, 'agentKey'], [{ key: 'x' }, 'key'], [{ agentKey: null }, 'agentKey']])('%j answers invalid_request', async (json, field) => {
    expectRefusal(await call('/api/agent/auth', { json }), 400, 'invalid_request', field);
  });

  test('an access token that was changed in any part is refused', async () => {
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: agent.key })).json;
    const { shareId } = await upload('for one agent', { authMode: 'agent', allowedAgentIds: [agent.agentId] }, session);
    expect((await call(`/api/share/${shareId}`, { bearer: accessToken })).status).toBe(200);
    const [head, body, mac] = (accessToken as string).slice(4).split('.');
    const claims = { ...JSON.parse(Buffer.from(body!, 'base64url').toString()), sub: 'another', exp: 4e9 };
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url');
    const changed = Buffer.from(JSON.stringify(claims)).toString('base64url');
    for (const forged of [`${head}.${changed}.${mac}`, `${none}.${body}.`, `${none}.${changed}.`, `${head}.${body}`, `${head}.${body}.${mac!.slice(0, -2)}`, '', 'x.y.z', 'x'.repeat(4_090)]) {
      expectRefusal(await call(`/api/share/${shareId}`, { bearer: `aat_${forged}` }), 401, 'invalid_agent_credential');
    }
  });
});
