/** Shares: what they resolve to, for whom, and how their policy comes about (interface chapters: Share resolve response, Policy). */
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { multipartLane } from '../support/multipart-lane.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must, plan, upload } = exchange;
const lane = multipartLane(exchange);
let session: string;
let reader: Agent;
let stranger: Agent;

beforeAll(async () => {
  session = await exchange.signIn();
  reader = await exchange.makeAgent(session);
  stranger = await exchange.makeAgent(session);
});

const resolve = (shareId: string, bearer?: string) => call(`/api/share/${shareId}`, { bearer });
const accessTokenOf = async ({ key }: Agent) => (await must('/api/agent/auth', { method: 'POST', bearer: key })).json.accessToken as string;

/** Every way to make a share. */
const routes: Record<string, (fields: Record<string, unknown>, bearer?: string) => Promise<Uploaded>> = {
  'a plan and the single lane': (fields, bearer) => upload('abc', { filename: 'a.txt', ...fields }, bearer),
  'a plan and the multipart lane': async (fields, bearer) => {
    const planned = await plan({ filename: 'a.txt', size: 3, lane: 'multipart', ...fields }, bearer);
    return lane.store([Buffer.from('abc')], { filename: 'a.txt' }, { plan: planned.plan });
  },
  'the multipart lane alone': (fields, bearer) => lane.store([Buffer.from('abc')], { filename: 'a.txt', ...fields }, { bearer }),
};

describe('GET /api/share/{shareId}', () => {
  test('answers every field of an open share, the legacy aliases too, and no other', async () => {
    const { id, shareId, expiresAt } = await upload('hello', { filename: 'a.txt', mimeType: 'text/plain' });
    const { status, json, headers } = await resolve(shareId);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(json).toEqual({
      id: shareId, shareId, type: 'file', targetId: id, fileId: id, pipeId: id,
      filename: 'a.txt', mimeType: 'text/plain', size: 5, expiresAt,
      policy: { mode: 'open', allowedAgentIds: [], expiresAt, metadata: {} },
      createdByUserId: null, createdByAgentId: null, authMode: 'open',
    });
  });

  test('answers every field of an agent share', async () => {
    const { owner } = (await must('/api/owner/session', { bearer: session })).json;
    const allowedAgentIds = [reader.agentId, 'not-yet-made'];
    const { id, shareId, expiresAt } = await upload('hello', { filename: 'a.json', mimeType: 'application/json', allowedAgentIds, maxUses: 3, policyMetadata: { channel: 'ops' } }, stranger.key);
    expect((await resolve(shareId, reader.key)).json).toEqual({
      id: shareId, shareId, type: 'file', targetId: id, fileId: id, pipeId: id,
      filename: 'a.json', mimeType: 'application/json', size: 5, expiresAt,
      policy: { mode: 'agent', allowedAgentIds, expiresAt, maxUses: 3, metadata: { channel: 'ops' } },
      createdByUserId: owner.id, createdByAgentId: stranger.agentId, authMode: 'agent',
    });
  });

  test('resolves an open share for anyone', async () => {
    const { shareId } = await upload('x');
    for (const bearer of [undefined, reader.key, await accessTokenOf(stranger)]) expect((await resolve(shareId, bearer)).status).toBe(200);
  });

  test('resolves an agent share for the agents on its list only, by key or access token', async () => {
    const { shareId } = await upload('x', { allowedAgentIds: [reader.agentId] });
    expect((await resolve(shareId, reader.key)).status).toBe(200);
    expect((await resolve(shareId, await accessTokenOf(reader))).status).toBe(200);
    expectRefusal(await resolve(shareId), 401, 'agent_auth_required');
    expectRefusal(await resolve(shareId, stranger.key), 403, 'agent_not_allowed_for_share');
    expectRefusal(await resolve(shareId, await accessTokenOf(stranger)), 403, 'agent_not_allowed_for_share');
  });

  test('an agent share refuses what is no credential of an agent', async () => {
    const { shareId } = await upload('x', { allowedAgentIds: [reader.agentId] }, session);
    const token = await accessTokenOf(reader);
    for (const bearer of [session, 'garbage', `${reader.key}x`, `agk_nobody.${'x'.repeat(43)}`, `${token}x`, token.toUpperCase(), 'aat_', `aat_${'x'.repeat(5_000)}`]) {
      expectRefusal(await resolve(shareId, bearer), 401, 'invalid_agent_credential');
    }
    expectRefusal(await call(`/api/share/${shareId}`, { headers: { authorization: `Basic ${Buffer.from(reader.key).toString('base64')}` } }), 401, 'invalid_agent_credential');
  });

  test('a revoked key and its access tokens resolve nothing from then on', async () => {
    const agent = await exchange.makeAgent(session);
    const token = await accessTokenOf(agent);
    const { shareId } = await upload('x', { allowedAgentIds: [agent.agentId] });
    expect((await resolve(shareId, token)).status).toBe(200);
    await must(`/api/agent/keys/${agent.keyId}`, { method: 'DELETE', bearer: session });
    expectRefusal(await resolve(shareId, agent.key), 401, 'invalid_agent_credential');
    expectRefusal(await resolve(shareId, token), 401, 'invalid_agent_credential');
  });

  test('agent ids are matched exactly', async () => {
    const agent = await exchange.makeAgent(session, `Agent-${crypto.randomUUID()}`);
    const { shareId } = await upload('x', { allowedAgentIds: [agent.agentId.toLowerCase(), `${agent.agentId}.`] });
    expectRefusal(await resolve(shareId, agent.key), 403, 'agent_not_allowed_for_share');
  });

  test('resolving spends nothing, and a share whose uses are spent still resolves', async () => {
    const { shareId, downloadUrl } = await upload('x', { maxUses: 1 });
    for (const _time of [1, 2, 3]) await must(`/api/share/${shareId}`);
    await must(downloadUrl);
    expectRefusal(await call(downloadUrl), 410, 'share_use_limit_exceeded');
    expect((await resolve(shareId)).json.policy.maxUses).toBe(1);
  });

  test('an absent share is not found', async () => {
    for (const shareId of ['shr_doesnotexist', `shr_${'x'.repeat(60)}`]) {
      for (const bearer of [undefined, reader.key]) expectRefusal(await resolve(shareId, bearer), 404, 'share_not_found_or_expired');
    }
  });

  test('what has no form of a share id is refused by name, also an id of another kind', async () => {
    const { id } = await upload('x');
    for (const shareId of [id, 'x', 'shr_', 'shr_%00', 'shr_a%2fb', `shr_${'x'.repeat(100)}`]) expectRefusal(await resolve(shareId), 400, 'invalid_request', 'shareId');
    const { shareId } = await upload('x');
    expectRefusal(await call(`/api/share/${shareId}?verbose=1`), 400, 'invalid_request', 'verbose');
  });

  test('the owner finds resolves and refusals in the audit record', async () => {
    const { shareId } = await upload('x', { allowedAgentIds: [reader.agentId] }, session);
    await resolve(shareId, reader.key);
    await resolve(shareId, stranger.key);
    expect((await exchange.events(session, { eventType: 'share.created', shareId }))[0]).toMatchObject({ targetType: 'share', targetId: shareId, actor: { type: 'owner' } });
    expect((await exchange.events(session, { eventType: 'share.resolved', shareId }))[0]).toMatchObject({ agentId: reader.agentId, outcome: 'allowed' });
    expect((await exchange.events(session, { eventType: 'share.denied', shareId }))[0])
      .toMatchObject({ agentId: stranger.agentId, outcome: 'denied', code: 'agent_not_allowed_for_share' });
  });
});

describe.each(Object.entries(routes))('a share made by %s', (_route, make) => {
  const resolved = async ({ shareId }: Uploaded) => (await must(`/api/share/${shareId}`, { bearer: reader.key })).json;
  const secondsLeft = (policy: { expiresAt: string }) => Math.round((Date.parse(policy.expiresAt) - Date.now()) / 1_000);

  test.each<[string, (agentId: string) => { maxUses: number; allowedAgentIds?: string[]; policyMetadata?: object }]>([
    ['an open policy with one use', () => ({ maxUses: 1 })],
    ['two agents, one use and a workflow label', (agentId) => ({ allowedAgentIds: [agentId, 'b'], maxUses: 1, policyMetadata: { workflow: 'w' } })],
    ['one receiving agent, one use and a step label', (agentId) => ({ allowedAgentIds: [agentId], maxUses: 1, policyMetadata: { step: 's' } })],
    ['three agents, three uses and a channel label', (agentId) => ({ allowedAgentIds: [agentId, 'b', 'c'], maxUses: 3, policyMetadata: { channel: 'c' } })],
  ])('has the policy that was asked for: %s', async (_shape, shape) => {
    const { allowedAgentIds = [], maxUses, policyMetadata = {} } = shape(reader.agentId);
    const mode = allowedAgentIds.length > 0 ? 'agent' : 'open';
    const { policy, authMode } = await resolved(await make({ authMode: mode, ttl: 1_000, ...shape(reader.agentId) }));
    expect(policy).toEqual({ mode, allowedAgentIds, maxUses, metadata: policyMetadata, expiresAt: expect.any(String) });
    expect(authMode).toBe(mode);
    expect(secondsLeft(policy)).toBeGreaterThan(980);
    expect(secondsLeft(policy)).toBeLessThanOrEqual(1_000);
  });

  test.each<[string, boolean, object, number]>([
    ['public', false, { mode: 'open', metadata: {} }, 86_400],
    ['public-once', false, { mode: 'open', maxUses: 1, metadata: {} }, 86_400],
    ['agent-only', true, { mode: 'agent', metadata: {} }, 86_400],
    ['expiring-handoff', true, { mode: 'agent', maxUses: 1, metadata: {} }, 3_600],
    ['passcode-ready', false, { mode: 'open', maxUses: 10, metadata: { gate: 'passcode-ready' } }, 86_400],
  ])('has the policy of the template %s', async (policyTemplateId, needsAgents, expected, ttl) => {
    const allowedAgentIds = needsAgents ? [reader.agentId] : [];
    const { policy } = await resolved(await make({ policyTemplateId, ...(needsAgents && { allowedAgentIds }) }));
    expect(policy).toEqual({ ...expected, allowedAgentIds, expiresAt: expect.any(String) });
    expect(secondsLeft(policy)).toBeGreaterThan(ttl - 20);
    expect(secondsLeft(policy)).toBeLessThanOrEqual(ttl);
  });

  test('explicit fields override the template', async () => {
    expect((await resolved(await make({ policyTemplateId: 'public-once', maxUses: 5 }))).policy).toMatchObject({ maxUses: 5 });
    const { policy } = await resolved(await make({ policyTemplateId: 'expiring-handoff', allowedAgentIds: [reader.agentId], ttl: 60, maxUses: 2 }));
    expect(policy.maxUses).toBe(2);
    expect(secondsLeft(policy)).toBeLessThanOrEqual(60);
    expect((await resolved(await make({ policyTemplateId: 'agent-only', authMode: 'open' }))).policy).toMatchObject({ mode: 'open', allowedAgentIds: [] });
    expect((await resolved(await make({ policyTemplateId: 'passcode-ready', policyMetadata: { step: 's' } }))).policy.metadata).toEqual({ gate: 'passcode-ready', step: 's' });
    expect((await resolved(await make({ policyTemplateId: 'passcode-ready', policyMetadata: { gate: 'mine' } }))).policy.metadata).toEqual({ gate: 'mine' });
  });

  test('says who made it', async () => {
    const { owner } = (await must('/api/owner/session', { bearer: session })).json;
    expect(await resolved(await make({}))).toMatchObject({ createdByUserId: null, createdByAgentId: null });
    expect(await resolved(await make({}, session))).toMatchObject({ createdByUserId: owner.id, createdByAgentId: null });
    expect(await resolved(await make({}, reader.key))).toMatchObject({ createdByUserId: owner.id, createdByAgentId: reader.agentId });
  });
});

describe('a share by template', () => {
  test.each(['agent-only', 'expiring-handoff'])('%s needs an allow list', async (policyTemplateId) => {
    const fields = { filename: 'a', size: 1, policyTemplateId };
    expectRefusal(await call('/api/transfer-plan', { json: fields }), 400, 'invalid_request', 'allowedAgentIds');
    expectRefusal(await lane.init(fields), 400, 'invalid_request', 'allowedAgentIds');
  });

  test.each(['public', 'public-once', 'passcode-ready'])('%s is open: an allow list beside it is refused, not passed over', async (policyTemplateId) => {
    expectRefusal(await call('/api/transfer-plan', { json: { filename: 'a', policyTemplateId, allowedAgentIds: ['a1'] } }), 400, 'invalid_request', 'allowedAgentIds');
  });
});
