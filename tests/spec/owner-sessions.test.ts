/** The life of an owner's sessions: another password, signing out everywhere, signing in anew (interface chapter: Authentication). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';

const exchange = sharedExchange();
const { baseUrl, call, must, makeOwner, makeAgent, events } = exchange;
const { origin } = new URL(baseUrl);
const another = 'another long password';

let admin: string;
beforeAll(async () => { admin = await exchange.signIn(); });

type Account = Awaited<ReturnType<typeof makeOwner>>;
const signIn = async ({ email, password }: Pick<Account, 'email' | 'password'>, headers: Record<string, string> = {}) =>
  (await must('/api/owner/session', { json: { email, password }, headers }));
const cookieOf = (answer: { headers: Headers }) => answer.headers.getSetCookie()[0]!.split(';')[0]!;
const isSignedIn = async (bearer: string) => (await call('/api/owner/session', { bearer })).status === 200;
const change = (bearer: string, currentPassword: string, newPassword = another) => call('/api/owner/password', { bearer, json: { currentPassword, newPassword } });

describe('POST /api/owner/password', () => {
  test('changes the password, ends every session and opens a new one for the caller', async () => {
    const account = await makeOwner(admin);
    const other = (await signIn(account)).json.token as string;
    const answer = await change(account.session, account.password);
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({
      owner: { id: account.id, email: account.email, admin: false },
      token: expect.stringMatching(/^aos_[A-Za-z0-9]+\.[A-Za-z0-9_-]{43}$/),
      expiresAt: expect.any(String),
    });
    expectSafeHeaders(answer.headers);
    expect(answer.headers.getSetCookie()).toHaveLength(1);
    expect(answer.headers.getSetCookie()[0]).toMatch(/; HttpOnly; SameSite=Lax/);
    expect(cookieOf(answer)).toBe(`${origin.startsWith('https:') ? '__Host-' : ''}aex_session=${answer.json.token}`);
    for (const ended of [account.session, other]) expectRefusal(await call('/api/owner/session', { bearer: ended }), 401, 'invalid_owner_credential');
    expect(await isSignedIn(answer.json.token)).toBe(true);
    expect((await call('/api/owner/session', { headers: { cookie: cookieOf(answer) } })).status).toBe(200);
    expectRefusal(await call('/api/owner/session', { json: { email: account.email, password: account.password } }), 401, 'invalid_owner_credential');
    expect((await signIn({ ...account, password: another })).json.owner.id).toBe(account.id);
    const [told] = await events(answer.json.token, { eventType: 'owner.password_changed' });
    expect(told).toMatchObject({ ownerId: account.id, actor: { type: 'owner', id: account.id }, outcome: 'allowed' });
    expect(JSON.stringify(told)).not.toContain(another);
  });

  test('the keys of the owner’s agents go on working', async () => {
    const account = await makeOwner(admin);
    const agent = await makeAgent(account.session);
    expect((await change(account.session, account.password)).status).toBe(200);
    expect((await call('/api/agent/auth', { method: 'POST', bearer: agent.key })).status).toBe(200);
  });

  test('a wrong current password answers invalid_password, changes nothing and is recorded', async () => {
    const account = await makeOwner(admin);
    const refused = await change(account.session, `${account.password}x`);
    expectRefusal(refused, 403, 'invalid_password');
    expect(refused.headers.getSetCookie()).toEqual([]);
    expect(await isSignedIn(account.session)).toBe(true);
    expect((await signIn(account)).status).toBe(201);
    expect(await events(account.session, { eventType: 'owner.denied' })).toMatchObject([{ ownerId: account.id, outcome: 'denied', code: 'invalid_password' }]);
  });

  test('of two changes at once one happens, and the other has no session any more', async () => {
    const account = await makeOwner(admin);
    const answers = await Promise.all([change(account.session, account.password, `${another} 1`), change(account.session, account.password, `${another} 2`)]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    // The other is refused by the password that it no longer knows, or by the session that has ended.
    expect(answers.map(({ status }) => status).filter((status) => status !== 200)[0]).toBeOneOf([401, 403]);
    const changed = answers.findIndex(({ status }) => status === 200);
    expect((await signIn({ ...account, password: `${another} ${changed + 1}` })).status).toBe(201);
  });

  test('by cookie it needs our own origin', async () => {
    const account = await makeOwner(admin);
    const cookie = cookieOf(await signIn(account));
    const json = { currentPassword: account.password, newPassword: another };
    expectRefusal(await call('/api/owner/password', { json, headers: { cookie } }), 403, 'forbidden_origin');
    expectRefusal(await call('/api/owner/password', { json, headers: { cookie, origin: 'https://evil.example' } }), 403, 'forbidden_origin');
    expect((await call('/api/owner/password', { json, headers: { cookie, origin } })).status).toBe(200);
  });

  test('without a session answers owner_auth_required, with an agent’s key invalid_owner_credential', async () => {
    const json = { currentPassword: 'x', newPassword: another };
    expectRefusal(await call('/api/owner/password', { json }), 401, 'owner_auth_required');
    expectRefusal(await call('/api/owner/password', { json, bearer: (await makeAgent(admin)).key }), 401, 'invalid_owner_credential');
  });

  test.each([
    ['a short new password', { currentPassword: 'x', newPassword: 'elevenchars' }, 'newPassword'],
    ['a new password of 257 characters', { currentPassword: 'x', newPassword: 'x'.repeat(257) }, 'newPassword'],
    ['a new password with U+0000', { currentPassword: 'x', newPassword: `${another}\u0000` }, 'newPassword'],
    ['no current password', { newPassword: another }, 'currentPassword'],
    ['an unknown field', { currentPassword: 'x', newPassword: another, email: 'a@example.com' }, 'email'],
  ])('%s answers invalid_request and does not repeat what was sent', async (_title, json, field) => {
    const answer = await call('/api/owner/password', { json, bearer: admin });
    expectRefusal(answer, 400, 'invalid_request', field);
    expect(answer.text).not.toContain(another);
    expect(answer.text).not.toContain('elevenchars');
  });
});

describe('DELETE /api/owner/sessions', () => {
  test.each(['cookie', 'Bearer'])('by %s ends every session of the owner, says how many, and clears the cookie', async (kind) => {
    const account = await makeOwner(admin);
    const second = await signIn(account);
    const third = (await signIn(account)).json.token as string;
    await must('/api/owner/session', { method: 'DELETE', bearer: third });
    const answer = await call('/api/owner/sessions', { method: 'DELETE', ...(kind === 'cookie' ? { headers: { cookie: cookieOf(second), origin } } : { bearer: account.session }) });
    expect([answer.status, answer.json]).toEqual([200, { ended: 2 }]);
    expect(answer.headers.getSetCookie().join()).toMatch(/^(__Host-)?aex_session=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax/);
    for (const ended of [account.session, second.json.token as string]) {
      expectRefusal(await call('/api/owner/session', { bearer: ended }), 401, 'invalid_owner_credential');
      expectRefusal(await call('/api/owner/sessions', { method: 'DELETE', bearer: ended }), 401, 'invalid_owner_credential');
    }
    const again = (await signIn(account)).json.token as string;
    expect(await isSignedIn(again)).toBe(true);
    const told = await events(again, { eventType: 'owner.signed_out' }, 2);
    expect(told.map(({ data }) => data)).toEqual([{ everywhere: true }, {}]);
  });

  test('leaves the sessions of other owners', async () => {
    const [account, other] = [await makeOwner(admin), await makeOwner(admin)];
    await must('/api/owner/sessions', { method: 'DELETE', bearer: account.session });
    expect(await isSignedIn(other.session)).toBe(true);
    expect(await isSignedIn(admin)).toBe(true);
  });

  test('without a session answers owner_auth_required, with the cookie from elsewhere forbidden_origin', async () => {
    expectRefusal(await call('/api/owner/sessions', { method: 'DELETE' }), 401, 'owner_auth_required');
    const account = await makeOwner(admin);
    const cookie = cookieOf(await signIn(account));
    expectRefusal(await call('/api/owner/sessions', { method: 'DELETE', headers: { cookie, origin: 'null' } }), 403, 'forbidden_origin');
    expect(await isSignedIn(account.session)).toBe(true);
  });
});

describe('signing in with the cookie of another session', () => {
  test('ends that session, whoever’s it was, and tells its owner', async () => {
    const [before, after] = [await makeOwner(admin), await makeOwner(admin)];
    const held = await signIn(before);
    const opened = await signIn(after, { cookie: cookieOf(held), origin });
    expectRefusal(await call('/api/owner/session', { bearer: held.json.token }), 401, 'invalid_owner_credential');
    expect(cookieOf(opened)).not.toBe(cookieOf(held));
    expect(await isSignedIn(opened.json.token)).toBe(true);
    expect(await isSignedIn(before.session)).toBe(true);
    const [told] = await events(before.session, { eventType: 'owner.signed_out' });
    expect(told).toMatchObject({ ownerId: before.id, actor: { type: 'owner', id: before.id }, data: { replaced: true } });
  });

  test('leaves it when the password is wrong', async () => {
    const account = await makeOwner(admin);
    const held = await signIn(account);
    const refused = await call('/api/owner/session', { json: { email: account.email, password: 'wrong' }, headers: { cookie: cookieOf(held), origin } });
    expectRefusal(refused, 401, 'invalid_owner_credential');
    expect(await isSignedIn(held.json.token)).toBe(true);
  });

  test.each([['garbage', 'garbage'], ['an agent’s key', 'agk_abc.def'], ['a session that nobody has', 'aos_abc.def']])('goes on when the cookie is %s', async (_title, value) => {
    const account = await makeOwner(admin);
    expect((await signIn(account, { cookie: `aex_session=${value}`, origin })).status).toBe(201);
  });

  test('a cookie with a wrong secret ends nothing', async () => {
    const account = await makeOwner(admin);
    const [id] = account.session.split('.');
    await signIn(account, { cookie: `aex_session=${id}.${'a'.repeat(43)}`, origin });
    expect(await isSignedIn(account.session)).toBe(true);
  });
});

describe('rate limit', () => {
  const fail = (email: string, password = 'wrong') => call('/api/owner/session', { json: { email, password } });

  test('ten wrong passwords and an account answers rate_limited, to the right one as well; an unknown account is told apart by nothing', async () => {
    const account = await makeOwner(admin);
    const unknown = `${randomUUID()}@example.com`;
    for (let tries = 0; tries < 10; tries += 1) {
      for (const email of [account.email, unknown]) expectRefusal(await fail(email), 401, 'invalid_owner_credential');
    }
    const refused = await call('/api/owner/session', { json: { email: account.email.toUpperCase(), password: account.password } });
    const refusedUnknown = await fail(unknown, account.password);
    for (const answer of [refused, refusedUnknown]) {
      expectRefusal(answer, 429, 'rate_limited');
      expect(answer.json.retryable).toBe(true);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(600);
      expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(900);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
    expect({ ...refusedUnknown.json, requestId: '' }).toEqual({ ...refused.json, requestId: '' });
    expectRefusal(await change(account.session, account.password), 429, 'rate_limited');
    expect(await isSignedIn(account.session)).toBe(true);
    expect((await signIn(await makeOwner(admin))).status).toBe(201);
    const told = await events(account.session, { eventType: 'owner.denied' }, 12);
    expect(told.filter(({ code }) => code === 'rate_limited')).toHaveLength(2);
    expect(told.filter(({ code }) => code === 'invalid_owner_credential')).toHaveLength(10);
  });

  test('right passwords are not counted, not even many at once', async () => {
    const account = await makeOwner(admin);
    const answers = await Promise.all(Array.from({ length: 20 }, () => call('/api/owner/session', { json: { email: account.email, password: account.password } })));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201));
  });

  test('of forty wrong ones at once exactly ten are tried', async () => {
    const account = await makeOwner(admin);
    const answers = await Promise.all(Array.from({ length: 40 }, () => fail(account.email)));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(30);
  });
});
