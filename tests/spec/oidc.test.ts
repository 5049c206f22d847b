/** Signing in at an OpenID Connect provider (interface chapter: Authentication): a real provider for the honest way, one of the tests' own for every lie. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser, type Browser } from '../support/cookie-jar.ts';
import { sharedExchange } from '../support/exchange.ts';
import { startFakeProvider, type Lie } from '../support/fake-provider.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { clientFacts, signInAtProvider, startRealProvider, type ProviderAccount } from '../support/real-provider.ts';
import { expectRefusal } from '../support/refusals.ts';

const accounts = new Map<string, ProviderAccount>();
let real: Awaited<ReturnType<typeof startRealProvider>>;
let fake: Awaited<ReturnType<typeof startFakeProvider>>;
let own: OwnStack;
let hostile: OwnStack;

beforeAll(async () => {
  [real, fake] = await Promise.all([startRealProvider(accounts), startFakeProvider()]);
  const settings = (issuer: string) => ({ OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientFacts.id, OIDC_CLIENT_SECRET: clientFacts.secret });
  [own, hostile] = await Promise.all([
    startOwnStack({ policy: { ...settings(real.issuer), OIDC_ALLOWED_EMAIL_DOMAINS: 'example.com, Example.org' } }),
    startOwnStack({ policy: settings(fake.issuer) }),
  ]);
  real.admit(`${own.exchange.baseUrl}/api/owner/oidc/callback`);
}, 120_000);
afterAll(() => Promise.all([own?.remove(), hostile?.remove(), real?.stop(), fake?.stop()]));

const hostOf = ({ exchange }: OwnStack) => new URL(exchange.baseUrl).host;
const startOf = ({ exchange }: OwnStack) => `${exchange.baseUrl}/api/owner/oidc/start`;
const sessionOf = (stack: OwnStack, browser: Browser) => browser.cookie(hostOf(stack), 'aex_session');

/** An account at the real provider. */
function enrol(facts: ProviderAccount = {}): { id: string; email: string } {
  const id = `subject-${randomUUID()}`;
  const account = { email: `${randomUUID()}@example.com`, email_verified: true, ...facts };
  accounts.set(id, account);
  return { id, email: account.email };
}

/** Signs in at the real provider. Answers the address that the browser is sent back to, not yet visited. */
const cameBack = (browser: Browser, id: string) => signInAtProvider(browser, startOf(own), real.issuer, id);

async function signInAs(id: string, browser = openBrowser()): Promise<string> {
  const answer = await browser.go(await cameBack(browser, id));
  if (answer.status !== 302) throw new Error(`${answer.status} ${answer.text}`);
  return sessionOf(own, browser)!;
}

/** A refusal as a problem document, and no session. */
function expectNoSession(stack: OwnStack, browser: Browser, answer: { status: number; headers: Headers; text: string }, status: number, code: string): void {
  expectRefusal({ ...answer, bytes: Buffer.from(answer.text), json: JSON.parse(answer.text) }, status, code);
  expect(answer.headers.getSetCookie().filter((cookie) => cookie.includes('aex_session'))).toEqual([]);
  expect(sessionOf(stack, browser)).toBeUndefined();
}

describe('GET /api/owner/oidc/start', () => {
  test('sends the browser to the provider with PKCE, state and nonce, and keeps what must be remembered in a cookie of its own', async () => {
    const answer = await own.exchange.call('/api/owner/oidc/start');
    expect(answer.status).toBe(302);
    const location = new URL(answer.headers.get('location')!);
    expect(location.origin).toBe(real.issuer);
    expect(Object.fromEntries(location.searchParams)).toEqual({
      client_id: clientFacts.id, response_type: 'code', scope: 'openid email', redirect_uri: `${own.exchange.baseUrl}/api/owner/oidc/callback`,
      code_challenge_method: 'S256', code_challenge: expect.stringMatching(/^[\w-]{43}$/), state: expect.stringMatching(/^[\w-]{43}$/), nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    const [cookie, ...others] = answer.headers.getSetCookie();
    expect(others).toEqual([]);
    expect(cookie).toMatch(/^aex_oidc=flow_[\w.-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/);
    for (const value of [location.searchParams.get('state')!, location.searchParams.get('nonce')!]) expect(cookie).not.toContain(value);
    const again = new URL((await own.exchange.call('/api/owner/oidc/start')).headers.get('location')!);
    for (const name of ['state', 'nonce', 'code_challenge']) expect(again.searchParams.get(name)).not.toBe(location.searchParams.get(name));
  });

  test('without a provider in the settings both routes answer route_not_found', async () => {
    for (const path of ['/api/owner/oidc/start', '/api/owner/oidc/callback?code=x&state=y']) {
      const answer = await sharedExchange().call(path);
      expectRefusal(answer, 404, 'route_not_found');
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
  });

  test('when the provider is away answers oidc_provider_failed', async () => {
    const gone = await startFakeProvider();
    await gone.stop();
    const stack = await startOwnStack({ policy: { OIDC_ISSUER: gone.issuer, OIDC_CLIENT_ID: 'x', OIDC_CLIENT_SECRET: 'y' } });
    try {
      expectRefusal(await stack.exchange.call('/api/owner/oidc/start'), 502, 'oidc_provider_failed');
    } finally {
      await stack.remove();
    }
  });
});

describe('GET /api/owner/oidc/callback', () => {
  test('a first sign-in makes an owner who is no admin, sets the session cookie, and goes on to the start page', async () => {
    const { id, email } = enrol();
    const browser = openBrowser();
    const answer = await browser.go(await cameBack(browser, id));
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/']);
    expect(answer.headers.getSetCookie().sort()).toEqual([
      expect.stringMatching(/^aex_oidc=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax$/),
      expect.stringMatching(/^aex_session=aos_\w+\.[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/),
    ]);
    const session = sessionOf(own, browser)!;
    const { owner } = (await own.exchange.must('/api/owner/session', { bearer: session })).json;
    expect(owner).toEqual({ id: expect.stringMatching(/^own_/), email, admin: false });
    expect(await own.exchange.events(session, { eventType: 'owner.created' })).toMatchObject([{ ownerId: owner.id, targetId: owner.id, data: { admin: false, by: 'oidc' } }]);
    expect(await own.exchange.events(session, { eventType: 'owner.signed_in' })).toMatchObject([{ ownerId: owner.id, data: { by: 'oidc' } }]);
    expect((await own.exchange.call('/api/agent/keys', { bearer: session, json: {} })).status).toBe(201);
  });

  test('the same person is the same owner, also with another e-mail', async () => {
    const { id, email } = enrol();
    const first = await signInAs(id);
    accounts.set(id, { email: `${randomUUID()}@example.org`, email_verified: true });
    const second = await signInAs(id);
    const ownerOf = async (bearer: string) => (await own.exchange.must('/api/owner/session', { bearer })).json.owner;
    expect(await ownerOf(second)).toEqual(await ownerOf(first));
    expect((await ownerOf(second)).email).toBe(email);
  });

  test('first sign-ins at once make one owner', async () => {
    const { id } = enrol();
    const browsers = Array.from({ length: 4 }, openBrowser);
    const addresses = await Promise.all(browsers.map((browser) => cameBack(browser, id)));
    await Promise.all(browsers.map((browser, index) => browser.go(addresses[index]!)));
    const owners = await Promise.all(browsers.map(async (browser) => (await own.exchange.must('/api/owner/session', { bearer: sessionOf(own, browser)! })).json.owner.id));
    expect(new Set(owners).size).toBe(1);
  });

  test('ends the session that the browser had before', async () => {
    const browser = openBrowser();
    const before = await signInAs(enrol().id, browser);
    const { id } = enrol();
    // The provider, too, would know the browser: this is somebody else at the same machine.
    const other = openBrowser();
    other.setCookie(hostOf(own), 'aex_session', before);
    const after = await signInAs(id, other);
    expect(after).not.toBe(before);
    expectRefusal(await own.exchange.call('/api/owner/session', { bearer: before }), 401, 'invalid_owner_credential');
  });

  test('such an owner has no password: none signs in, and there is none to change', async () => {
    const { id, email } = enrol();
    const session = await signInAs(id);
    for (const password of ['', 'null', 'undefined']) expectRefusal(await own.exchange.call('/api/owner/session', { json: { email, password } }), 401, 'invalid_owner_credential');
    const refused = await own.exchange.call('/api/owner/password', { bearer: session, json: { currentPassword: '', newPassword: 'a long new password' } });
    expectRefusal(refused, 409, 'password_not_set');
    expect((await own.exchange.must('/api/owner/sessions', { method: 'DELETE', bearer: session })).json).toEqual({ ended: 1 });
    expect(await signInAs(id)).toMatch(/^aos_/);
  });

  test('an account with a password is not taken over by its e-mail, however it is written: owner_email_taken', async () => {
    const { exchange } = own;
    const account = { email: `${randomUUID()}@example.com`, password: 'a long enough password' };
    await exchange.must('/api/owner/accounts', { bearer: await exchange.signIn(), json: account });
    for (const email of [account.email, account.email.toUpperCase()]) {
      const browser = openBrowser();
      expectNoSession(own, browser, await browser.go(await cameBack(browser, enrol({ email }).id)), 409, 'owner_email_taken');
    }
    expect((await exchange.call('/api/owner/session', { json: account })).status).toBe(201);
  });

  test('an e-mail of another subject at the provider is taken as well', async () => {
    const { id, email } = enrol();
    await signInAs(id);
    const browser = openBrowser();
    expectNoSession(own, browser, await browser.go(await cameBack(browser, enrol({ email }).id)), 409, 'owner_email_taken');
  });

  test.each<[string, ProviderAccount]>([
    ['that is not verified', { email_verified: false }],
    ['of another domain', { email: 'somebody@other.example' }],
    ['of a domain below an allowed one', { email: 'somebody@sub.example.com' }],
    ['that ends like an allowed domain', { email: 'somebody@notexample.com' }],
    ['that is none', { email: 'nobody' }],
  ])('an e-mail %s answers oidc_sign_in_refused', async (_title, facts) => {
    const browser = openBrowser();
    expectNoSession(own, browser, await browser.go(await cameBack(browser, enrol(facts).id)), 403, 'oidc_sign_in_refused');
  });

  test('a sign-in that the provider refused answers oidc_sign_in_refused', async () => {
    const browser = openBrowser();
    const { location } = await browser.go(startOf(own));
    const state = new URL(location!).searchParams.get('state')!;
    const answer = await browser.go(`${own.exchange.baseUrl}/api/owner/oidc/callback?error=access_denied&state=${state}&iss=${encodeURIComponent(real.issuer)}`);
    expectNoSession(own, browser, answer, 403, 'oidc_sign_in_refused');
  });
});

describe('a callback that is not the sign-in which this browser began answers invalid_oidc_callback', () => {
  const changed: [string, (back: URL, browser: Browser) => void][] = [
    ['another state', (back) => back.searchParams.set('state', 'x'.repeat(43))],
    ['no state', (back) => back.searchParams.delete('state')],
    ['no cookie', (_back, browser) => browser.setCookie(hostOf(own), 'aex_oidc', '')],
    ['a cookie that was changed', (_back, browser) => browser.setCookie(hostOf(own), 'aex_oidc', `${browser.cookie(hostOf(own), 'aex_oidc')}x`)],
    ['another code', (back) => back.searchParams.set('code', 'x'.repeat(43))],
    ['the issuer of another provider', (back) => back.searchParams.set('iss', 'https://other.example')],
  ];
  test.each(changed)('%s', async (_title, change) => {
    const browser = openBrowser();
    const back = new URL(await cameBack(browser, enrol().id));
    change(back, browser);
    expectNoSession(own, browser, await browser.go(back.href), 403, 'invalid_oidc_callback');
  });

  test('the cookie of another browser', async () => {
    const [victim, attacker] = [openBrowser(), openBrowser()];
    await victim.go(startOf(own));
    expectNoSession(own, victim, await victim.go(await cameBack(attacker, enrol().id)), 403, 'invalid_oidc_callback');
  });

  test('the same callback again, with the cookie that it had', async () => {
    const browser = openBrowser();
    const back = await cameBack(browser, enrol().id);
    const flow = browser.cookie(hostOf(own), 'aex_oidc')!;
    expect((await browser.go(back)).status).toBe(302);
    const thief = openBrowser();
    thief.setCookie(hostOf(own), 'aex_oidc', flow);
    expectNoSession(own, thief, await thief.go(back), 403, 'invalid_oidc_callback');
  });

  test('of the same callback ten times at once one signs in', async () => {
    const browser = openBrowser();
    const back = await cameBack(browser, enrol().id);
    const cookie = `aex_oidc=${browser.cookie(hostOf(own), 'aex_oidc')}`;
    const answers = await Promise.all(Array.from({ length: 10 }, () => own.exchange.call(back, { headers: { cookie } })));
    expect(answers.map(({ status }) => status).sort()).toEqual([302, ...Array<number>(9).fill(403)]);
  });

  test('a parameter that came twice answers invalid_request', async () => {
    const browser = openBrowser();
    const back = await cameBack(browser, enrol().id);
    expectNoSession(own, browser, await browser.go(`${back}&state=x`), 400, 'invalid_request');
  });
});

describe('what a provider says that cannot be believed', () => {
  /** Begins at the hostile stack and comes back with what an honest provider would send. */
  async function tryWith(lie: Lie, facts: Record<string, string> = {}) {
    fake.tell(lie);
    const browser = openBrowser();
    const { location } = await browser.go(startOf(hostile));
    fake.note(location!);
    const query = new URLSearchParams({ code: 'a-code', state: new URL(location!).searchParams.get('state')!, ...facts });
    return { browser, answer: await browser.go(`${hostile.exchange.baseUrl}/api/owner/oidc/callback?${query}`) };
  }

  test('an honest answer of the same provider signs in, with the code verifier and the secret in the header', async () => {
    const { browser, answer } = await tryWith({});
    expect([answer.status, answer.text]).toEqual([302, '']);
    const { owner } = (await hostile.exchange.must('/api/owner/session', { bearer: sessionOf(hostile, browser)! })).json;
    expect(owner.email).toBe('somebody@example.com');
    const { form, authorization } = fake.asked.findLast(({ path }) => path === '/token')!;
    expect(form.get('code_verifier')).toMatch(/^[\w-]{43}$/);
    expect(authorization).toMatch(/^Basic /);
    expect(form.get('client_secret')).toBeNull();
  });

  const lies: [string, Lie][] = [
    ['the nonce of another sign-in', { claims: (honest) => ({ ...honest, nonce: 'x'.repeat(43) }) }],
    ['no nonce', { claims: ({ nonce: _nonce, ...rest }) => rest }],
    ['another audience', { claims: (honest) => ({ ...honest, aud: 'another-client' }) }],
    ['an audience beside ours without azp', { claims: (honest) => ({ ...honest, aud: [honest.aud as string, 'another-client'] }) }],
    ['another issuer', { claims: (honest) => ({ ...honest, iss: 'https://other.example' }) }],
    ['no subject', { claims: ({ sub: _sub, ...rest }) => rest }],
    ['an ID token that has expired', { claims: (honest) => ({ ...honest, exp: Math.floor(Date.now() / 1_000) - 3_600 }) }],
    ['algorithm none', { alg: 'none' }],
    ['HS256 with the client’s secret', { alg: 'HS256' }],
    ['ES256 by a key that is not the provider’s', { alg: 'ES256' }],
    ['a signature by another key', { alg: 'another key' }],
    ['no ID token', { token: { status: 200, body: { access_token: 'x', token_type: 'Bearer' } } }],
    ['userinfo of another subject', { claims: ({ email: _email, ...rest }) => rest, userinfo: { sub: 'another', email: 'a@example.com', email_verified: true } }],
  ];
  test.each(lies)('%s answers invalid_oidc_token', async (_title, lie) => {
    const { browser, answer } = await tryWith(lie);
    expectNoSession(hostile, browser, answer, 403, 'invalid_oidc_token');
  });

  test('an e-mail that is verified only in words answers oidc_sign_in_refused', async () => {
    for (const verified of ['true', 1, undefined]) {
      const { browser, answer } = await tryWith({ claims: (honest) => ({ ...honest, sub: 'else', email_verified: verified }) });
      expectNoSession(hostile, browser, answer, 403, 'oidc_sign_in_refused');
    }
  });

  const failures: [string, Lie][] = [
    ['an error of its own', { token: { status: 500, body: { error: 'server_error' } } }],
    ['a client that it does not know', { token: { status: 401, body: { error: 'invalid_client' } } }],
    ['a redirect', { token: { status: 307, headers: { location: 'http://127.0.0.1:1/' }, body: {} } }],
    ['no JSON', { token: { status: 200, headers: { 'content-type': 'text/html' }, body: 'x' } }],
    ['megabytes', { token: { status: 200, body: 'x'.repeat(3 * 1_024 ** 2) } }],
    ['nothing at all', { token: 'silence' }],
  ];
  test.each(failures)('a token request that is answered with %s answers oidc_provider_failed', async (_title, lie) => {
    const begun = Date.now();
    const { browser, answer } = await tryWith(lie);
    expectNoSession(hostile, browser, answer, 502, 'oidc_provider_failed');
    expect(Date.now() - begun).toBeLessThan(10_000);
  });

  test('a token request is never sent to where the provider redirects it', () => {
    expect(fake.asked.map(({ path }) => path).filter((path) => !['/.well-known/openid-configuration', '/token', '/jwks', '/me'].includes(path))).toEqual([]);
  });
});
