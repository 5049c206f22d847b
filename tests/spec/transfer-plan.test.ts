/** Transfer plans: what a sender may store, fixed and signed before any state exists (interface chapter: Transfer plan and creation). */
import { createHash } from 'node:crypto';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { MiB } from '../support/multipart-lane.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must, plan, upload } = exchange;
const GiB = 1_024 * MiB;
let session: string;

beforeAll(async () => { session = await exchange.signIn(); });

const ask = (fields: object, bearer?: string) => call('/api/transfer-plan', { json: { filename: 'a.txt', ...fields }, bearer });

/** The signed claims, verified against the published keys as any holder of the plan can. */
async function verify(signed: string) {
  const { json } = await must('/.well-known/jwks.json');
  const { payload, protectedHeader } = await compactVerify(signed, createLocalJWKSet(json as JSONWebKeySet));
  return { header: protectedHeader, claims: JSON.parse(Buffer.from(payload).toString('utf8')) as Record<string, any> };
}

describe('POST /api/transfer-plan', () => {
  test('answers lane, geometry, capacity, release, expiry, fallback and where to send the bytes', async () => {
    const before = Date.now();
    const { status, json, headers } = await ask({ size: 5, mimeType: 'text/plain', maxUses: 3, ttl: 60, policyMetadata: { step: 'two' } });
    expect(status).toBe(201);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(json).toEqual({
      planId: expect.stringMatching(/^pln_[A-Za-z0-9]{20,}$/),
      plan: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      lane: 'single',
      geometry: { partSize: 16 * MiB, partCount: 1, maxParallelParts: expect.any(Number) },
      capacity: { maxBytes: 5, maxParts: 10_000 },
      release: { mode: 'open', allowedAgentIds: [], maxUses: 3, ttl: 60, metadata: { step: 'two' } },
      expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      fallback: [{ lane: 'multipart', when: expect.any(String) }],
      upload: {
        method: 'PUT',
        url: `${exchange.baseUrl}/api/lane/single/${json.planId}`,
        headers: { 'X-Transfer-Plan': json.plan, 'Content-Type': 'application/octet-stream' },
      },
    });
    expect(json.geometry.maxParallelParts).toBeGreaterThan(0);
    expect(Date.parse(json.expiresAt)).toBeGreaterThan(before);
  });

  test('without policy fields, the release is open for a day and has no cap', async () => {
    expect((await plan({ filename: 'a', size: 1 })).release).toEqual({ mode: 'open', allowedAgentIds: [], ttl: 86_400, metadata: {} });
  });

  test('without a lane, small files and streams go by single and large files by multipart', async () => {
    expect((await ask({ size: MiB })).json).toMatchObject({ lane: 'single' });
    expect((await ask({})).json).toMatchObject({ lane: 'single', upload: { method: 'PUT' } });
    expect((await ask({ size: GiB })).json).toMatchObject({
      lane: 'multipart',
      upload: { method: 'POST', url: `${exchange.baseUrl}/api/upload/multipart/init`, headers: { 'Content-Type': 'application/json' } },
      fallback: [{ lane: 'single', when: expect.any(String) }],
    });
  });

  test('the lane that was asked for is planned', async () => {
    expect((await ask({ size: 1, lane: 'multipart' })).json).toMatchObject({ lane: 'multipart', geometry: { partCount: 1 } });
    expect((await ask({ size: GiB, lane: 'single' })).json).toMatchObject({ lane: 'single' });
  });

  test('direct falls back to multipart where clients cannot reach an object store', async () => {
    expect((await ask({ size: GiB, lane: 'direct' })).json).toMatchObject({ lane: 'multipart', upload: { url: expect.stringMatching(/\/init$/) } });
  });

  test('a stream has no size: no part count, the capacity of the deployment, no lane that needs a size', async () => {
    const { json } = await ask({});
    expect(json.geometry).not.toHaveProperty('partCount');
    expect(json.capacity).toEqual({ maxBytes: 10 * GiB, maxParts: 10_000 });
    expect(json.fallback).toEqual([]);
    expectRefusal(await ask({ lane: 'multipart' }), 400, 'invalid_request', 'size');
    expectRefusal(await ask({ lane: 'direct' }), 400, 'invalid_request', 'size');
  });

  test('the part count follows from size and part size', async () => {
    expect((await ask({ size: 10 * MiB, partSize: 5 * MiB })).json.geometry).toMatchObject({ partSize: 5 * MiB, partCount: 2 });
    expect((await ask({ size: 10 * MiB + 1, partSize: 5 * MiB })).json.geometry).toMatchObject({ partSize: 5 * MiB, partCount: 3 });
    expect((await ask({ size: 100 * MiB })).json.geometry).toMatchObject({ partSize: 16 * MiB, partCount: 7 });
  });

  test('a template fills the release and explicit fields override it', async () => {
    expect((await plan({ filename: 'a', policyTemplateId: 'public-once' })).release).toMatchObject({ mode: 'open', maxUses: 1 });
    expect((await plan({ filename: 'a', policyTemplateId: 'public-once', maxUses: 9 })).release).toMatchObject({ maxUses: 9 });
  });

  test('naming agents without a mode means agent mode', async () => {
    expect((await plan({ filename: 'a', allowedAgentIds: ['a1'] })).release).toMatchObject({ mode: 'agent', allowedAgentIds: ['a1'] });
  });

  test('no transfer state is made', async () => {
    const { claims } = await verify((await plan({ filename: 'a', size: 1 })).plan);
    expectRefusal(await call(`/api/share/${claims.shareId}`), 404, 'share_not_found_or_expired');
    expect((await headOf(exchange, `/api/dl/${claims.transferId}`)).status).toBe(404);
  });

  test('anonymous senders, agents and owners may plan, and the share says who made it', async () => {
    const agent = await exchange.makeAgent(session);
    const creatorOf = async (bearer?: string) => {
      const { shareId } = await upload('x', {}, bearer);
      const { createdByUserId, createdByAgentId } = (await must(`/api/share/${shareId}`)).json;
      return { createdByUserId, createdByAgentId };
    };
    const { owner } = (await must('/api/owner/session', { bearer: session })).json;
    expect(await creatorOf()).toEqual({ createdByUserId: null, createdByAgentId: null });
    expect(await creatorOf(session)).toEqual({ createdByUserId: owner.id, createdByAgentId: null });
    expect(await creatorOf(agent.key)).toEqual({ createdByUserId: owner.id, createdByAgentId: agent.agentId });
  });

  test('a credential that is sent must be a good one of a kind that may plan', async () => {
    const agent = await exchange.makeAgent(session);
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: agent.key })).json;
    for (const bearer of ['garbage', `${agent.key}x`, `agk_nobody.${'x'.repeat(43)}`, accessToken as string]) {
      expectRefusal(await ask({}, bearer), 401, 'invalid_agent_credential');
    }
    expectRefusal(await ask({}, `${session.slice(0, -1)}${session.endsWith('A') ? 'B' : 'A'}`), 401, 'invalid_owner_credential');
  });

  test('the owner finds the plan in the audit record', async () => {
    const { planId } = await plan({ filename: 'a', size: 7 }, session);
    const [event] = await exchange.events(session, { eventType: 'policy.planned', targetId: planId });
    expect(event).toMatchObject({ targetType: 'policy', targetId: planId, outcome: 'allowed', actor: { type: 'owner' } });
  });
});

describe('GET /.well-known/jwks.json', () => {
  test('publishes public keys only', async () => {
    const { json } = await must('/.well-known/jwks.json');
    expect(json.keys.length).toBeGreaterThan(0);
    for (const key of json.keys) {
      expect(key).toEqual({ kty: 'OKP', crv: 'Ed25519', x: expect.stringMatching(/^[\w-]{43}$/), kid: expect.any(String), alg: 'EdDSA', use: 'sig' });
    }
  });

  test('a plan is a JWS that verifies against them and says what the answer says', async () => {
    const sha256 = createHash('sha256').update('hello').digest('hex');
    const { json } = await ask({ size: 5, sha256, maxUses: 2, policyMetadata: { a: 'b' } });
    const { header, claims } = await verify(json.plan);
    expect(header).toMatchObject({ alg: 'EdDSA' });
    expect(claims).toMatchObject({ planId: json.planId, lane: json.lane, geometry: json.geometry, release: json.release, size: 5, sha256, iss: exchange.baseUrl });
    expect(claims.exp * 1_000).toBe(Date.parse(json.expiresAt));
  });

  test('a plan that was changed does not verify', async () => {
    const { plan: signed } = await plan({ filename: 'a', maxUses: 1 });
    const [header, payload, signature] = signed.split('.') as [string, string, string];
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
    delete claims.release.maxUses;
    const forged = Buffer.from(JSON.stringify(claims)).toString('base64url');
    await expect(verify(`${header}.${forged}.${signature}`)).rejects.toThrow();
  });
});
