/** Every creation route ends in an ordinary share: the same promises, tried after each of them (interface chapter: What the service does). */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { exchangeAt, sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';
import { startSecondGateway, type SecondGateway } from '../support/second-gateway.ts';
import { startSourceServer, type SourceServer } from '../support/source-server.ts';
import { waysIn, type WayIn, type Wish } from '../support/ways-in.ts';

const exchange = sharedExchange();
const { call, must } = exchange;
let session: string;
let named: Agent;
let other: Agent;
/** The same exchange, where the retired surfaces work. */
let legacy: SecondGateway;
let source: SourceServer;

beforeAll(async () => {
  session = await exchange.signIn();
  [named, other] = [await exchange.makeAgent(session), await exchange.makeAgent(session)];
  const stack = { baseUrl: exchange.baseUrl, dataDir: inject('dataDir'), natsUrl: process.env['AEX_TEST_NATS_URL']! };
  source = await startSourceServer({ way: (_request, response) => response.setHeader('content-type', 'text/plain').end(content) });
  legacy = await startSecondGateway(stack, { LEGACY_SURFACES: 'upload,tus', RATE_LIMITS: 'off' });
});
afterAll(async () => {
  source.close();
  await legacy.stop();
});

/** Text, above what is stored in a row, so that a blob is behind it. */
const content = Buffer.from(randomBytes(30_000).toString('base64'));
const forNamed = () => ({ authMode: 'agent', allowedAgentIds: [named.agentId] });

async function expectContent(way: WayIn, { status, bytes }: { status: number; bytes: Buffer }): Promise<void> {
  expect(status).toBe(200);
  expect((way.contentOf?.(bytes) ?? bytes).equals(content)).toBe(true);
}

describe.each(waysIn(exchange, { serve: () => source.url('/way'), legacy: () => exchangeAt(legacy.baseUrl, exchange.owner) }))('a share made by $name', (way) => {
  const create = (wish: Wish = {}) => way.create(content, wish);
  const refused = async (policy: Record<string, unknown>): Promise<string> => create({ policy, bearer: session }).then(() => 'created', (error: Error) => error.message);
  const resolve = async ({ shareId }: Uploaded, bearer?: string) => call(`/api/share/${shareId}`, { bearer });
  const target = ({ id }: Uploaded) => `/api/dl/${id}`;

  test('is told by the Upload response', async () => {
    const made = await create();
    expect(made).toMatchObject({
      id: expect.stringMatching(/^trf_\w+$/), shareId: expect.stringMatching(/^shr_\w+$/), deleteToken: expect.stringMatching(/^dlt_/),
      shareUrl: `${exchange.baseUrl}/s/${made.shareId}`, downloadUrl: `${exchange.baseUrl}/api/dl/${made.id}?share_id=${made.shareId}`,
    });
    expect(new Date(made.expiresAt).toISOString()).toBe(made.expiresAt);
  });

  test('resolves to its type, policy and creator, and its page opens', async () => {
    const made = await create({ policy: { ttl: 600, maxUses: 7, policyMetadata: { channel: 'tests' } }, bearer: named.key });
    const { json } = await resolve(made);
    expect(json).toMatchObject({
      id: made.shareId, shareId: made.shareId, type: way.type, targetId: made.id, [`${way.type}Id`]: made.id, authMode: 'open', createdByAgentId: named.agentId,
      policy: { mode: 'open', allowedAgentIds: [], maxUses: 7, metadata: { channel: 'tests' }, expiresAt: made.expiresAt },
    });
    expect(Date.parse(made.expiresAt) - Date.now()).toBeLessThanOrEqual(600_000);
    expect((await call(made.shareUrl)).status).toBe(200);
  });

  test('open, is fetched up to its maxUses; looking spends nothing', async () => {
    const made = await create({ policy: { maxUses: 2 } });
    for (const left of ['1', '0']) {
      expect((await call(made.downloadUrl, { method: 'HEAD' })).status).toBe(200);
      expectRefusal(await call(target(made)), 400, 'share_id_required');
      const fetched = await call(made.downloadUrl);
      await expectContent(way, fetched);
      expect(fetched.headers.get('x-remaining-uses')).toBe(left);
    }
    expectRefusal(await call(made.downloadUrl), 410, 'share_use_limit_exceeded');
  });

  test('for named agents, is fetched with one grant a fetch', async () => {
    const made = await create({ policy: forNamed(), bearer: session });
    expectRefusal(await resolve(made), 401, 'agent_auth_required');
    expectRefusal(await resolve(made, other.key), 403, 'agent_not_allowed_for_share');
    expect((await resolve(made, named.key)).json).toMatchObject({ type: way.type, authMode: 'agent' });
    expectRefusal(await call(made.downloadUrl), 401, 'grant_required');
    expectRefusal(await call('/api/agent/grants', { bearer: other.key, json: { shareId: made.shareId } }), 403, 'agent_not_allowed_for_share');

    const issued = (await must('/api/agent/grants', { bearer: named.key, json: { shareId: made.shareId } })).json;
    expect(issued).toMatchObject({ targetType: way.type, targetId: made.id });
    const headers = { 'X-Access-Grant': issued.accessToken as string };
    await expectContent(way, await call(target(made), { headers }));
    expectRefusal(await call(target(made), { headers }), 409, 'grant_already_used');
  });

  test('refuses the grant of another share', async () => {
    const [one, two] = [await create({ policy: forNamed() }), await create({ policy: forNamed() })];
    const headers = { 'X-Access-Grant': await exchange.grant(two.shareId, named.key) };
    expectRefusal(await call(target(one), { headers }), 403, 'invalid_grant');
    await expectContent(way, await call(target(two), { headers }));
  });

  test('with a template and a passcode has the policy of both', async () => {
    const made = await create({ policy: { policyTemplateId: 'public-once', passcode: 'a good passcode' } });
    expectRefusal(await call(made.downloadUrl), 401, 'passcode_required');
    expectRefusal(await call(made.downloadUrl, { headers: { 'X-Share-Passcode': 'a bad passcode' } }), 403, 'invalid_passcode');
    await expectContent(way, await call(made.downloadUrl, { headers: { 'X-Share-Passcode': 'a good passcode' } }));
    expectRefusal(await call(made.downloadUrl, { headers: { 'X-Share-Passcode': 'a good passcode' } }), 410, 'share_use_limit_exceeded');
  });

  test('is deleted with its token, and again answers the same', async () => {
    const made = await create();
    expectRefusal(await call(target(made), { method: 'DELETE' }), 401, 'delete_token_required');
    for (const _time of [1, 2]) {
      const { status, json } = await call(target(made), { method: 'DELETE', headers: { 'X-Delete-Token': made.deleteToken } });
      expect({ status, json }).toEqual({ status: 200, json: { id: made.id, deleted: true } });
    }
    for (const answer of [await resolve(made), await call(made.downloadUrl)]) expectRefusal(answer, 404, 'share_not_found_or_expired');
  });

  test('is made once for an Idempotency-Key, and told the same each time', async () => {
    const wish = { bearer: session, key: randomUUID(), policy: { maxUses: 3 } };
    const [first, second] = [await create(wish), await create(wish)];
    expect(second).toEqual(first);
    expect((await exchange.events(session, { shareId: first.shareId, eventType: 'share.created' })).length).toBe(1);
  });

  test('leaves its record: created, fetched, deleted', async () => {
    const made = await create({ bearer: named.key, policy: { maxUses: 5 } });
    await call(made.downloadUrl);
    await must(target(made), { method: 'DELETE', bearer: named.key });
    for (const eventType of ['transfer.fetched', 'transfer.deleted']) await exchange.events(session, { targetId: made.id, eventType });
    const events = await exchange.events(session, { targetId: made.id });
    const types = events.map(({ eventType, targetType }) => `${String(eventType)} ${String(targetType)}`);
    expect(types).toEqual(expect.arrayContaining([`transfer.fetched ${way.type}`, `transfer.deleted ${way.type}`]));
    expect((await exchange.events(session, { shareId: made.shareId, eventType: 'share.created' }))[0]).toMatchObject({ actor: { type: 'agent', id: named.agentId }, agentId: named.agentId });
  });

  test.each([
    ['ttl', { ttl: 29 }], ['ttl', { ttl: 604_801 }], ['maxUses', { maxUses: 0 }], ['allowedAgentIds', { authMode: 'agent' }],
    ['allowedAgentIds', { authMode: 'open', allowedAgentIds: ['somebody'] }], ['policyTemplateId', { policyTemplateId: 'nothing' }], ['authMode', { authMode: 'closed' }],
  ])('is refused with a bad %s that the answer names: %j', async (field, policy) => {
    const spelled = field.replace(/[A-Z]/g, (letter) => `_?${letter}`);
    expect(await refused(policy)).toMatch(new RegExp(`invalid_request.*${spelled}`, 'is'));
  });
});
