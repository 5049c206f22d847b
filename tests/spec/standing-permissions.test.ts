/** Standing permissions: recorded, listed and revoked; nothing asks for them yet (interface chapters: Standing permission record, Standing permissions). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';

const { call, must, signIn, makeOwner, makeAgent, upload, events } = sharedExchange();

let session: string;
let ownerId: string;
let giver: Agent;
let taker: Agent;
beforeAll(async () => {
  session = await signIn();
  ownerId = (await must('/api/owner/session', { bearer: session })).json.owner.id as string;
  [giver, taker] = [await makeAgent(session), await makeAgent(session)];
});

type Json = Record<string, unknown>;

const wanted = (fields: Json = {}) => ({ fromAgentId: giver.agentId, toAgentId: taker.agentId, scopes: ['share.resolve'], ...fields });
const make = (fields: Json = {}, headers: Record<string, string> = {}) => call('/api/agent/permissions', { json: wanted(fields), bearer: session, headers });
const newPermission = async (fields: Json = {}) => (await must('/api/agent/permissions', { json: wanted(fields), bearer: session })).json.permission;
const revoke = (permissionId: string) => call(`/api/agent/permissions/${permissionId}`, { method: 'DELETE', bearer: session });
const list = async () => (await must('/api/agent/permissions', { bearer: session })).json.permissions as Json[];
const read = async (permissionId: string) => (await list()).find(({ id }) => id === permissionId);

const constrained = (fields: Json) => ({ constraints: { allowedPolicyModes: ['agent'], ...fields } });
const texts = (count: number) => Array.from({ length: count }, (_one, index) => `text/kind-${index}`);
const unknown = 'perm_000000000000000000000000';
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString();

describe('POST /api/agent/permissions', () => {
  test('records who gives what to whom, under which constraints and until when', async () => {
    const constraints = {
      allowedPolicyModes: ['agent'], targetTypes: ['file', 'pipe', 'folder'], contentTypes: ['application/json', 'image/*', 'text/plain; charset=utf-8'],
      maxShareTtlSeconds: 3_600, maxGrantTtlSeconds: 120, policyMetadata: { channel: 'handoff' },
    };
    const expiresAt = inSeconds(3_600);
    const answer = await make({ scopes: ['share.resolve', 'grant.issue'], constraints, expiresAt });
    expect(answer.status).toBe(201);
    expect(answer.json).toEqual({
      permission: {
        id: expect.stringMatching(/^perm_[A-Za-z0-9]{24}$/), ownerId,
        from: { type: 'agent', agentId: giver.agentId }, to: { type: 'agent', agentId: taker.agentId },
        scopes: ['share.resolve', 'grant.issue'], constraints, createdAt: time, updatedAt: time, expiresAt,
        audit: { state: 'active', enforcement: 'deferred', createdBy: { type: 'owner', id: ownerId }, createdByRequestId: answer.headers.get('x-request-id') },
        version: 1,
      },
    });
    expect(await read(answer.json.permission.id)).toEqual(answer.json.permission);
  });

  test('without constraints it is for agent policies, and without an expiry it stands until it is revoked', async () => {
    const permission = await newPermission();
    expect(permission.constraints).toEqual({ allowedPolicyModes: ['agent'] });
    expect(permission).not.toHaveProperty('expiresAt');
    expect(permission).not.toHaveProperty('revokedAt');
  });

  test('the receiving agent need not exist yet', async () => {
    const toAgentId = `agent-${randomUUID()}`;
    expect((await newPermission({ toAgentId })).to).toEqual({ type: 'agent', agentId: toAgentId });
  });

  test('the giving agent must be one of the owner', async () => {
    expectRefusal(await make({ fromAgentId: `agent-${randomUUID()}` }), 400, 'invalid_request', 'fromAgentId');
  });

  test('a time of another zone is answered in UTC', async () => {
    expect((await newPermission({ expiresAt: '2100-01-01T01:30:00+01:30' })).expiresAt).toBe('2100-01-01T00:00:00.000Z');
  });

  test('what a list names twice it holds once', async () => {
    const permission = await newPermission({ scopes: ['grant.issue', 'grant.issue'], ...constrained({ targetTypes: ['file', 'file'] }) });
    expect(permission).toMatchObject({ scopes: ['grant.issue'], constraints: { targetTypes: ['file'] } });
  });

  test.each<[string, Json]>([
    ['25 content types', constrained({ contentTypes: texts(25) })], ['empty lists', constrained({ allowedPolicyModes: [], targetTypes: [], contentTypes: [] })],
    ['a maxShareTtlSeconds of 1', constrained({ maxShareTtlSeconds: 1 })], ['a maxShareTtlSeconds of 604800', constrained({ maxShareTtlSeconds: 604_800 })],
    ['a maxGrantTtlSeconds of 1', constrained({ maxGrantTtlSeconds: 1 })], ['a maxGrantTtlSeconds of 300', constrained({ maxGrantTtlSeconds: 300 })],
    ['empty metadata', constrained({ policyMetadata: {} })],
  ])('%s are good', async (_title, fields) => {
    expect((await newPermission(fields)).constraints).toEqual(fields['constraints']);
  });

  test.each<[string, Json, string]>([
    ['no giving agent', { fromAgentId: undefined }, 'fromAgentId'], ['a giving agent of no id', { fromAgentId: 'a b' }, 'fromAgentId'],
    ['no receiving agent', { toAgentId: undefined }, 'toAgentId'], ['a receiving agent of 129 characters', { toAgentId: 'x'.repeat(129) }, 'toAgentId'],
    ['no scopes', { scopes: undefined }, 'scopes'], ['an empty list of scopes', { scopes: [] }, 'scopes'], ['an unknown scope', { scopes: ['share.resolve', 'share.delete'] }, 'scopes.1'],
    ['constraints without allowedPolicyModes', { constraints: {} }, 'constraints.allowedPolicyModes'], ['an open policy mode', constrained({ allowedPolicyModes: ['open'] }), 'constraints.allowedPolicyModes.0'],
    ['an unknown target type', constrained({ targetTypes: ['share'] }), 'constraints.targetTypes.0'],
    ['26 content types', constrained({ contentTypes: texts(26) }), 'constraints.contentTypes'], ['a content type of no kind', constrained({ contentTypes: ['json'] }), 'constraints.contentTypes.0'],
    ['a maxShareTtlSeconds of 0', constrained({ maxShareTtlSeconds: 0 }), 'constraints.maxShareTtlSeconds'], ['a maxShareTtlSeconds of 604801', constrained({ maxShareTtlSeconds: 604_801 }), 'constraints.maxShareTtlSeconds'],
    ['a maxGrantTtlSeconds of 0', constrained({ maxGrantTtlSeconds: 0 }), 'constraints.maxGrantTtlSeconds'], ['a maxGrantTtlSeconds of 301', constrained({ maxGrantTtlSeconds: 301 }), 'constraints.maxGrantTtlSeconds'],
    ['metadata that is no text', constrained({ policyMetadata: { a: 1 } }), 'constraints.policyMetadata.a'], ['an unknown constraint', constrained({ maxUses: 1 }), 'constraints.maxUses'],
    ['an expiry in the past', { expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'], ['an expiry that is no time', { expiresAt: 'tomorrow' }, 'expiresAt'],
    ['an expiry without a zone', { expiresAt: '2100-01-01T00:00:00' }, 'expiresAt'], ['an expiry on no day', { expiresAt: '2100-02-30T00:00:00Z' }, 'expiresAt'],
    ['an expiry past the year 9999', { expiresAt: '9999-12-31T23:59:59-01:00' }, 'expiresAt'],
    ['an unknown field', { audit: {} }, 'audit'],
  ])('%s answers invalid_request', async (_title, fields, field) => {
    expectRefusal(await make(fields), 400, 'invalid_request', field);
  });

  test('the same Idempotency-Key and request records one permission and answers the same, also after it was revoked', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const toAgentId = `agent-${randomUUID()}`;
    const answers = await Promise.all(Array.from({ length: 6 }, () => make({ toAgentId }, headers)));
    const { permission } = answers[0]!.json;
    await revoke(permission.id);
    answers.push(await make({ toAgentId }, headers));
    for (const { status, json } of answers) expect([status, json]).toEqual([201, { permission }]);
    expect((await list()).filter(({ to }) => (to as { agentId: string }).agentId === toAgentId)).toHaveLength(1);
    expectRefusal(await make({}, headers), 422, 'idempotency_key_reused');
  });
});

describe('GET /api/agent/permissions', () => {
  test('lists permissions newest first and counts them', async () => {
    const older = await newPermission();
    const newer = await newPermission();
    const { status, json } = await call('/api/agent/permissions?limit=2', { bearer: session });
    expect([status, json]).toEqual([200, { count: 2, permissions: [newer, older] }]);
  });

  test('lists revoked and expired ones and says so', async () => {
    const expiring = await newPermission({ expiresAt: inSeconds(1.2) });
    const revoked = await newPermission();
    await revoke(revoked.id);
    expect(await read(revoked.id)).toMatchObject({ audit: { state: 'revoked' } });
    await expect.poll(async () => (await read(expiring.id))!['audit'], { timeout: 10_000 }).toMatchObject({ state: 'expired' });
    expect(await read(expiring.id)).toEqual({ ...expiring, audit: { ...expiring.audit, state: 'expired' } });
  });

  test.each(['1', '200'])('limit %s is good', async (limit) => {
    const { json } = await must(`/api/agent/permissions?limit=${limit}`, { bearer: session });
    expect(json.count).toBe(json.permissions.length);
    expect(json.count).toBeLessThanOrEqual(Number(limit));
  });

  test.each(['0', '201', 'abc', '-1', '1.5', '', '1000000000'])('limit %s answers invalid_request', async (limit) => {
    expectRefusal(await call(`/api/agent/permissions?limit=${limit}`, { bearer: session }), 400, 'invalid_request', 'limit');
  });
});

describe('DELETE /api/agent/permissions/{permissionId}', () => {
  test('revokes a permission, and answers the same again', async () => {
    const permission = await newPermission();
    const first = await revoke(permission.id);
    expect(first.status).toBe(200);
    expect(first.json.permission).toEqual({
      ...permission, revokedAt: time, updatedAt: first.json.permission.revokedAt, version: 2,
      audit: { ...permission.audit, state: 'revoked', revokedBy: { type: 'owner', id: ownerId }, revokedByRequestId: first.headers.get('x-request-id') },
    });
    const again = await revoke(permission.id);
    expect([again.status, again.json]).toEqual([200, first.json]);
    expect(await read(permission.id)).toEqual(first.json.permission);
  });

  test('an unknown permission answers permission_not_found', async () => {
    expectRefusal(await revoke(unknown), 404, 'permission_not_found');
  });

  test.each(['agrp_000000000000000000000000', 'perm_', 'perm_a-b', '%00'])('%s is no permission id and answers invalid_request', async (permissionId) => {
    expectRefusal(await revoke(permissionId), 400, 'invalid_request', 'permissionId');
  });
});

describe('every endpoint of standing permissions', () => {
  const requests: [string, string][] = [['POST', '/api/agent/permissions'], ['GET', '/api/agent/permissions'], ['DELETE', `/api/agent/permissions/${unknown}`]];

  test.each(requests)('%s %s takes the owner session and nothing else', async (method, path) => {
    const json = method === 'POST' ? wanted() : undefined;
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: giver.key })).json;
    expectRefusal(await call(path, { method, json }), 401, 'owner_auth_required');
    for (const bearer of [giver.key, accessToken, 'garbage']) expectRefusal(await call(path, { method, json, bearer }), 401, 'invalid_owner_credential');
  });

  test('the session cookie from another site answers forbidden_origin', async () => {
    const headers = { cookie: `aex_session=${session}`, origin: 'https://elsewhere.example' };
    expectRefusal(await call('/api/agent/permissions', { json: wanted(), headers }), 403, 'forbidden_origin');
    expectRefusal(await call(`/api/agent/permissions/${unknown}`, { method: 'DELETE', headers }), 403, 'forbidden_origin');
  });

  test('another owner’s permission answers permission_not_found, is not listed, and another owner’s agent gives none', async () => {
    const { id } = await newPermission();
    const { session: bearer } = await makeOwner(session);
    expectRefusal(await call(`/api/agent/permissions/${id}`, { method: 'DELETE', bearer }), 404, 'permission_not_found');
    expect((await must('/api/agent/permissions', { bearer })).json).toEqual({ count: 0, permissions: [] });
    expectRefusal(await call('/api/agent/permissions', { json: wanted(), bearer }), 400, 'invalid_request', 'fromAgentId');
  });
});

describe('a standing permission', () => {
  test('changes no resolve and no grant: only the allow list of the share counts, whatever is given or revoked', async () => {
    const { shareId } = await upload('for the giver alone', { authMode: 'agent', allowedAgentIds: [giver.agentId] }, session);
    const outcomes = async () => Promise.all([giver, taker].flatMap(({ key }) => [
      call(`/api/share/${shareId}`, { bearer: key }), call('/api/agent/grants', { json: { shareId }, bearer: key }),
    ]).map(async (answer) => (await answer).json.code ?? (await answer).status));
    const before = await outcomes();
    expect(before).toEqual([200, 201, 'agent_not_allowed_for_share', 'agent_not_allowed_for_share']);
    const { id } = await newPermission({ scopes: ['share.resolve', 'grant.issue'] });
    expect(await outcomes()).toEqual(before);
    await newPermission({ fromAgentId: taker.agentId, toAgentId: giver.agentId, ...constrained({ allowedPolicyModes: [], targetTypes: [], maxGrantTtlSeconds: 1 }) });
    expect(await outcomes()).toEqual(before);
    await revoke(id);
    expect(await outcomes()).toEqual(before);
  });

  test('leaves one event when it is made and one when it is revoked', async () => {
    const expiresAt = inSeconds(600);
    const { id } = await newPermission({ expiresAt });
    await revoke(id);
    await revoke(id);
    const found = await events(session, { targetType: 'standing_permission', targetId: id }, 2);
    const facts = { targetType: 'standing_permission', targetId: id, agentId: giver.agentId, ownerId, actor: { type: 'owner', id: ownerId } };
    expect(found.reverse()).toMatchObject([
      { ...facts, eventType: 'standing_permission.created', data: { toAgentId: taker.agentId, scopes: ['share.resolve'], expiresAt } },
      { ...facts, eventType: 'standing_permission.revoked', data: { toAgentId: taker.agentId } },
    ]);
  });
});
