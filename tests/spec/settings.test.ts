/** What a deployment may set otherwise (interface chapter: Limits), on a stack with such settings. */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';

const MiB = 1_024 ** 2;
let own: OwnStack;
let session: string;

beforeAll(async () => {
  own = await startOwnStack({
    policy: { PLAN_TTL_SECONDS: '2', GRANT_TTL_SECONDS: '1', ACCESS_TOKEN_TTL_SECONDS: '30', ANONYMOUS_CREATE: 'deny', TTL_MAX_SECONDS: '3600', TTL_DEFAULT_SECONDS: '600', TRANSFER_MAX_BYTES: String(10 * MiB) },
    storage: { UPLOAD_TTL_SECONDS: '2', SWEEP_SECONDS: '1' },
  });
  session = await own.exchange.signIn();
});
afterAll(() => own.remove());

describe('a deployment’s settings', () => {
  test('anonymous callers may be denied to create, while they still fetch', async () => {
    const { call, upload } = own.exchange;
    const denied = await call('/api/transfer-plan', { json: { filename: 'a', size: 1 } });
    expect([denied.status, denied.json.code]).toEqual([401, 'agent_auth_required']);
    const init = await call('/api/upload/multipart/init', { json: { filename: 'a', size: 1 } });
    expect([init.status, init.json.code]).toEqual([401, 'agent_auth_required']);
    const imported = await call('/api/import-url', { json: { url: 'http://absent.test/' } });
    expect([imported.status, imported.json.code]).toEqual([401, 'agent_auth_required']);
    const sent = await upload('open', {}, session);
    expect((await call(sent.downloadUrl)).text).toBe('open');
  });

  test('the limits are shown in the plan and hold', async () => {
    const { call, plan } = own.exchange;
    const planned = await plan({ filename: 'a' }, session);
    expect(planned).toMatchObject({ capacity: { maxBytes: 10 * MiB }, release: { ttl: 600 } });
    const long = await call('/api/transfer-plan', { bearer: session, json: { filename: 'a', size: 1, ttl: 3_601 } });
    expect(long.json).toMatchObject({ code: 'invalid_request', errors: [{ path: 'ttl' }] });
    const large = await call('/api/transfer-plan', { bearer: session, json: { filename: 'a', size: 10 * MiB + 1 } });
    expect(large.json).toMatchObject({ status: 413, code: 'payload_too_large', errors: [{ path: 'size' }] });
  });

  test('a plan is good until its expiresAt, then lanes answer plan_expired', async () => {
    const { call, plan } = own.exchange;
    const single = await plan({ filename: 'a', size: 1, lane: 'single' }, session);
    const large = await plan({ filename: 'a', size: 40_000, lane: 'single' }, session);
    const parts = await plan({ filename: 'a', size: 1, lane: 'multipart' }, session);
    await setTimeout(Date.parse(String(parts['expiresAt'])) - Date.now() + 50);
    for (const [planned, body] of [[single, 'x'], [large, 'x'.repeat(40_000)]] as const) {
      const late = await call(planned.upload.url, { method: 'PUT', headers: planned.upload.headers, body });
      expect([late.status, late.json.code]).toEqual([401, 'plan_expired']);
    }
    const init = await call('/api/upload/multipart/init', { headers: { 'x-transfer-plan': parts.plan }, json: { filename: 'a', size: 1 } });
    expect([init.status, init.json.code]).toEqual([401, 'plan_expired']);
  });

  test('an upload that is not completed in time has expired: part and complete say so, status shows it, the sweep tells it', async () => {
    const { call, must, events } = own.exchange;
    const { uploadId, transferId, expiresAt } = (await must('/api/upload/multipart/init', { bearer: session, json: { filename: 'a', size: 3 } })).json;
    await must(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`, { bearer: session, body: 'abc' });
    await setTimeout(Date.parse(expiresAt as string) - Date.now() + 50);
    const part = await call(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`, { bearer: session, body: 'abc' });
    expect([part.status, part.json.code]).toEqual([410, 'upload_expired']);
    const complete = await call('/api/upload/multipart/complete', { bearer: session, json: { uploadId } });
    expect([complete.status, complete.json.code]).toEqual([410, 'upload_expired']);
    const status = await call(`/api/upload/multipart/status?uploadId=${uploadId}`, { bearer: session });
    expect(status.json).toMatchObject({ state: 'expired', transferId });
    expect(await events(session, { eventType: 'upload.expired', targetId: transferId as string })).toHaveLength(1);
  });

  test('a grant past its expiry answers invalid_grant, and a new one works', async () => {
    const { call, upload, makeAgent, grant } = own.exchange;
    const agent = await makeAgent(session);
    const { id, shareId } = await upload('secret', { allowedAgentIds: [agent.agentId] }, session);
    const first = await grant(shareId, agent.key);
    await setTimeout(2_050);
    const late = await call(`/api/dl/${id}`, { headers: { 'x-access-grant': first } });
    expect([late.status, late.json.code]).toEqual([403, 'invalid_grant']);
    const fetched = await call(`/api/dl/${id}`, { headers: { 'x-access-grant': await grant(shareId, agent.key) } });
    expect(fetched.text).toBe('secret');
  });
});
