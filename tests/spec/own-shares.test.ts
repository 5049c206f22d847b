/** Shares by their owner: listed, changed and revoked after they were made (interface chapter: Policy). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Answer, type Uploaded } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { baseUrl, call, must, signIn, makeAgent, upload, grant, events } = exchange;

let session: string;
let sender: Agent;
let receiver: Agent;
beforeAll(async () => {
  session = await signIn();
  [sender, receiver] = await Promise.all([makeAgent(session), makeAgent(session)]);
});

const forReceiver = () => ({ authMode: 'agent', allowedAgentIds: [receiver.agentId] });
const list = (query: Record<string, string> = {}, bearer: string | undefined = session) => call(`/api/shares?${new URLSearchParams(query)}`, { bearer });
const patch = (shareId: string, json: unknown, bearer: string | undefined = session) => call(`/api/share/${shareId}`, { method: 'PATCH', json, bearer });
const revoke = (shareId: string, bearer: string | undefined = session) => call(`/api/share/${shareId}`, { method: 'DELETE', bearer });
const fetchOpen = ({ downloadUrl }: Uploaded) => call(downloadUrl);
const fetchWith = ({ id }: Uploaded, token: string) => call(`/api/dl/${id}`, { headers: { 'x-access-grant': token } });
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString();
const ids = ({ json }: Answer): string[] => json.shares.map(({ id }: { id: string }) => id);
const absent = 'shr_000000000000000000000000';

async function ownShare({ shareId, id }: Uploaded, bearer?: string) {
  return (await list({ targetId: id }, bearer)).json.shares.find((share: { id: string }) => share.id === shareId);
}

describe('GET /api/shares', () => {
  test('shows of a share what resolving it does, and what only its owner sees', async () => {
    const made = await upload('own', { ...forReceiver(), maxUses: 3, policyMetadata: { step: 'one' } }, session);
    const resolved = (await must(`/api/share/${made.shareId}`, { bearer: receiver.key })).json;
    await fetchWith(made, await grant(made.shareId, receiver.key));
    const answer = await list({ targetId: made.id });
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({
      count: 1, nextCursor: null,
      shares: [{ ...resolved, state: 'active', uses: 1, remainingUses: 2, createdAt: expect.stringMatching(/^\d{4}-.*Z$/) }],
    });
  });

  test('is newest first, and a walk in small pages meets each share once while others are made', async () => {
    const agent = await makeAgent(session);
    const made: string[] = [];
    for (let n = 0; n < 7; n += 1) made.unshift((await upload('walked', {}, agent.key)).shareId);
    const met: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await list({ limit: '3', agentId: agent.agentId, ...(cursor && { cursor }) });
      expect(page.json.count).toBe(page.json.shares.length);
      met.push(...ids(page));
      cursor = page.json.nextCursor ?? undefined;
      await upload('later', {}, agent.key);
    } while (cursor);
    expect(met).toEqual(made);
  });

  test('an owner sees those of all their agents, an agent those that it created, nobody those of anonymous senders', async () => {
    const [byOwner, byAgent, byNobody] = [await upload('o', {}, session), await upload('a', {}, sender.key), await upload('n')];
    expect(ids(await list({ targetId: byOwner.id }))).toEqual([byOwner.shareId]);
    expect(ids(await list({ targetId: byAgent.id }))).toEqual([byAgent.shareId]);
    expect(ids(await list({ targetId: byNobody.id }))).toEqual([]);
    expect(ids(await list({ targetId: byAgent.id }, sender.key))).toEqual([byAgent.shareId]);
    for (const [{ id }, key] of [[byOwner, sender.key], [byAgent, receiver.key], [byNobody, sender.key]] as const) {
      expect(ids(await list({ targetId: id }, key))).toEqual([]);
    }
    expect(ids(await list({ agentId: receiver.agentId, targetId: byAgent.id }, sender.key))).toEqual([]);
  });

  test('each filter leaves what fits it', async () => {
    const agent = await makeAgent(session);
    const open = await upload('open', { maxUses: 1 }, agent.key);
    const forAgent = await upload('agent', forReceiver(), agent.key);
    await fetchOpen(open);
    const deleted = await upload('deleted', {}, agent.key);
    await must(`/api/dl/${deleted.id}`, { method: 'DELETE', bearer: session });
    const revoked = await upload('revoked', {}, agent.key);
    await must(`/api/share/${revoked.shareId}`, { method: 'DELETE', bearer: session });
    const mine = (query: Record<string, string>) => list({ agentId: agent.agentId, ...query });
    expect(ids(await mine({}))).toEqual([revoked, deleted, forAgent, open].map(({ shareId }) => shareId));
    expect(ids(await mine({ mode: 'agent' }))).toEqual([forAgent.shareId]);
    expect(ids(await mine({ targetId: open.id }))).toEqual([open.shareId]);
    for (const [state, { shareId }] of [['active', forAgent], ['exhausted', open], ['deleted', deleted], ['revoked', revoked]] as const) {
      const found = await mine({ state });
      expect(found.json.shares.map((share: { id: string; state: string }) => [share.id, share.state])).toEqual([[shareId, state]]);
    }
    expect((await mine({ state: 'expired' })).json).toEqual({ count: 0, shares: [], nextCursor: null });
  });

  test.each([
    ['limit', '0'], ['limit', '201'], ['limit', 'abc'], ['state', 'ended'], ['state', ''], ['mode', 'closed'], ['agentId', 'a/b'], ['targetId', ''], ['page', '2'],
  ])('%s %j answers invalid_request', async (field, value) => {
    expectRefusal(await list({ [field]: value }), 400, 'invalid_request', field);
  });

  test('a cursor that is forged, of another caller or of other filters answers invalid_cursor', async () => {
    for (let n = 0; n < 2; n += 1) await upload('page', {}, sender.key);
    const cursor = (await list({ limit: '1', mode: 'open' })).json.nextCursor as string;
    expect((await list({ limit: '2', mode: 'open', cursor })).status).toBe(200);
    expectRefusal(await list({ limit: '1', cursor }), 400, 'invalid_cursor');
    expectRefusal(await list({ limit: '1', mode: 'open', cursor }, sender.key), 400, 'invalid_cursor');
    for (const forged of [`${cursor}x`, cursor.slice(0, -1), 'cur_e30.x', '', 'x'.repeat(1_024)]) expectRefusal(await list({ mode: 'open', cursor: forged }), 400, 'invalid_cursor');
    const ofAudit = (await must('/api/audit?limit=1', { bearer: session })).json.nextCursor as string;
    expectRefusal(await list({ cursor: ofAudit }), 400, 'invalid_cursor');
  });
});

describe('PATCH /api/share/{shareId}', () => {
  test('changes what is named and leaves the rest; the next resolve and fetch know it', async () => {
    const made = await upload('change', { ...forReceiver(), maxUses: 1, policyMetadata: { a: '1' } }, session);
    const expiresAt = inSeconds(600);
    const answer = await patch(made.shareId, { expiresAt, maxUses: 2, allowedAgentIds: [sender.agentId, receiver.agentId], metadata: { b: '2' } });
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ id: made.shareId, state: 'active', uses: 0, remainingUses: 2, expiresAt });
    const policy = { mode: 'agent', allowedAgentIds: [sender.agentId, receiver.agentId], expiresAt, maxUses: 2, metadata: { b: '2' } };
    expect(answer.json.policy).toEqual(policy);
    expect((await must(`/api/share/${made.shareId}`, { bearer: sender.key })).json.policy).toEqual(policy);
    for (const { key } of [sender, receiver]) expect((await fetchWith(made, await grant(made.shareId, key))).status).toBe(200);
    expect((await patch(made.shareId, { metadata: {} })).json.policy).toEqual({ ...policy, metadata: {} });
  });

  test('the same again, and an empty change, answer the share and tell nothing more', async () => {
    const made = await upload('again', { maxUses: 3 }, session);
    const first = await patch(made.shareId, { maxUses: 2 });
    expect((await patch(made.shareId, { maxUses: 2 })).json).toEqual(first.json);
    expect((await patch(made.shareId, {})).json).toEqual(first.json);
    await patch(made.shareId, { maxUses: null });
    const told = await events(session, { shareId: made.shareId, eventType: 'share.updated' }, 2);
    expect(told.map(({ data, actor, outcome }) => [data, actor, outcome])).toEqual([
      [{ fields: ['maxUses'], maxUses: null }, { type: 'owner', id: first.json.createdByUserId }, 'allowed'],
      [{ fields: ['maxUses'], maxUses: 2 }, { type: 'owner', id: first.json.createdByUserId }, 'allowed'],
    ]);
  });

  test('a share that lives longer keeps its bytes as long, and one that ends sooner is gone then', async () => {
    const made = await upload('kept', { ttl: 30 }, session);
    const expiresAt = inSeconds(3_600);
    expect((await patch(made.shareId, { expiresAt })).json.expiresAt).toBe(expiresAt);
    const short = await upload('gone', {}, session);
    expect((await patch(short.shareId, { expiresAt: inSeconds(2) })).status).toBe(200);
    const end = Date.parse(made.expiresAt) + 3_000;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, end - Date.now())));
    expect((await fetchOpen(made)).text).toBe('kept');
    expect((await must(`/api/dl/${made.id}`, { method: 'HEAD' })).headers.get('content-length')).toBe('4');
    expectRefusal(await fetchOpen(short), 404, 'share_not_found_or_expired');
    expectRefusal(await patch(short.shareId, { expiresAt: inSeconds(60) }), 404, 'share_not_found_or_expired');
    expect((await ownShare(short)).state).toBe('expired');
  });

  test('a cap that is raised or removed lets an exhausted share be fetched again', async () => {
    const made = await upload('more', { maxUses: 1 }, session);
    await fetchOpen(made);
    expectRefusal(await fetchOpen(made), 410, 'share_use_limit_exceeded');
    expect((await patch(made.shareId, { maxUses: 2 })).json).toMatchObject({ state: 'active', uses: 1, remainingUses: 1 });
    expect((await fetchOpen(made)).status).toBe(200);
    expectRefusal(await fetchOpen(made), 410, 'share_use_limit_exceeded');
    const uncapped = await patch(made.shareId, { maxUses: null });
    expect(uncapped.json).not.toHaveProperty('remainingUses');
    expect(uncapped.json.policy).not.toHaveProperty('maxUses');
    expect((await fetchOpen(made)).status).toBe(200);
  });

  test('a cap below the uses that are spent is refused by name; of just as many, the share is exhausted', async () => {
    const made = await upload('spent', { maxUses: 5 }, session);
    for (let n = 0; n < 2; n += 1) await fetchOpen(made);
    expectRefusal(await patch(made.shareId, { maxUses: 1 }), 400, 'invalid_request', 'maxUses');
    expect((await patch(made.shareId, { maxUses: 2 })).json).toMatchObject({ state: 'exhausted', remainingUses: 0 });
    expectRefusal(await fetchOpen(made), 410, 'share_use_limit_exceeded');
  });

  test('a cap that changes during fetches is exact: as many bodies as uses, never more than the cap', async () => {
    const made = await upload('raced', { maxUses: 30 }, session);
    const [fetched, patched] = await Promise.all([
      Promise.all(Array.from({ length: 60 }, () => fetchOpen(made))),
      Promise.all([20, 12, 6].map((maxUses) => patch(made.shareId, { maxUses }))),
    ]);
    const found = await ownShare(made);
    expect(fetched.filter(({ status }) => status === 200)).toHaveLength(found.uses);
    expect(found.uses).toBeLessThanOrEqual(found.policy.maxUses);
    for (const answer of patched) expect([200, 400]).toContain(answer.status);
    for (const answer of fetched) if (answer.status !== 200) expectRefusal(answer, 410, 'share_use_limit_exceeded');
  });

  test('an agent that leaves the allow list cannot use the grant it has', async () => {
    const made = await upload('left', forReceiver(), session);
    const token = await grant(made.shareId, receiver.key);
    await patch(made.shareId, { allowedAgentIds: [sender.agentId] });
    expectRefusal(await fetchWith(made, token), 403, 'invalid_grant');
    expectRefusal(await call('/api/agent/grants', { bearer: receiver.key, json: { shareId: made.shareId } }), 403, 'agent_not_allowed_for_share');
  });

  test.each<[string, () => Record<string, unknown>, string]>([
    ['an expiry in the past', () => ({ expiresAt: inSeconds(-1) }), 'expiresAt'],
    ['an expiry beyond the deployment’s bound', () => ({ expiresAt: inSeconds(604_800 + 60) }), 'expiresAt'],
    ['an expiry that is no time', () => ({ expiresAt: 'tomorrow' }), 'expiresAt'],
    ['no expiry', () => ({ expiresAt: null }), 'expiresAt'],
    ['a cap of 0', () => ({ maxUses: 0 }), 'maxUses'],
    ['a cap as text', () => ({ maxUses: '5' }), 'maxUses'],
    ['an allow list on an open share', () => ({ allowedAgentIds: [receiver.agentId] }), 'allowedAgentIds'],
    ['an empty allow list on an open share', () => ({ allowedAgentIds: [] }), 'allowedAgentIds'],
    ['labels that are no text', () => ({ metadata: { a: 1 } }), 'metadata.a'],
    ['17 labels', () => ({ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, ''])) }), 'metadata'],
    ['another mode', () => ({ mode: 'agent' }), 'mode'],
    ['a passcode', () => ({ passcode: 'open sesame' }), 'passcode'],
  ])('%s is refused by name and changes nothing', async (_title, fields, field) => {
    const made = await upload('kept as it is', { maxUses: 3 }, session);
    const before = await ownShare(made);
    expectRefusal(await patch(made.shareId, { maxUses: 2, ...fields() }), 400, 'invalid_request', field);
    expect(await ownShare(made)).toEqual(before);
  });

  test('an agent share never loses its last agent, and has at most 100', async () => {
    const made = await upload('agents', forReceiver(), session);
    const many = Array.from({ length: 101 }, () => `agent-${randomUUID()}`);
    expectRefusal(await patch(made.shareId, { allowedAgentIds: [] }), 400, 'invalid_request', 'allowedAgentIds');
    expectRefusal(await patch(made.shareId, { allowedAgentIds: many }), 400, 'invalid_request', 'allowedAgentIds');
    expect((await patch(made.shareId, { allowedAgentIds: many.slice(1) })).json.policy.allowedAgentIds).toEqual(many.slice(1));
  });
});

describe('DELETE /api/share/{shareId}', () => {
  test('revokes: resolve, fetch, grant and page find nothing, the bytes are still there, and again answers the same', async () => {
    const made = await upload('revoked', forReceiver(), session);
    const token = await grant(made.shareId, receiver.key);
    const first = await revoke(made.shareId);
    expect([first.status, first.json]).toEqual([200, { id: made.shareId, revoked: true }]);
    const again = await revoke(made.shareId);
    expect([again.status, again.json]).toEqual([200, first.json]);
    expectRefusal(await call(`/api/share/${made.shareId}`, { bearer: receiver.key }), 404, 'share_not_found_or_expired');
    expectRefusal(await fetchWith(made, token), 404, 'share_not_found_or_expired');
    expectRefusal(await call('/api/agent/grants', { bearer: receiver.key, json: { shareId: made.shareId } }), 404, 'share_not_found_or_expired');
    expectRefusal(await patch(made.shareId, { maxUses: 5 }), 404, 'share_not_found_or_expired');
    expect((await call(made.shareUrl)).status).toBe(404);
    expect((await call(`/api/dl/${made.id}`, { method: 'HEAD' })).status).toBe(200);
    expect((await ownShare(made)).state).toBe('revoked');
    const told = await events(session, { shareId: made.shareId, eventType: 'share.revoked' });
    expect(told).toMatchObject([{ targetType: 'share', targetId: made.shareId, actor: { type: 'owner' }, outcome: 'allowed' }]);
  });

  test('an open share ends for whoever holds its link', async () => {
    const made = await upload('open', {}, session);
    await revoke(made.shareId);
    expectRefusal(await fetchOpen(made), 404, 'share_not_found_or_expired');
  });

  test('unused grants end with it, and racing fetches either come before or find nothing', async () => {
    const made = await upload('race', forReceiver(), session);
    const tokens = await Promise.all(Array.from({ length: 20 }, () => grant(made.shareId, receiver.key)));
    const [fetched] = await Promise.all([Promise.all(tokens.map((token) => fetchWith(made, token))), revoke(made.shareId)]);
    const served = fetched.filter(({ status }) => status === 200).length;
    expect((await ownShare(made)).uses).toBe(served);
    for (const answer of fetched) if (answer.status !== 200) expectRefusal(answer, 404, 'share_not_found_or_expired');
  });

  test('an upload that is sent again does not bring its share back', async () => {
    const body = Buffer.from('once more');
    const planned = await exchange.plan({ filename: 'a.txt', size: body.length, lane: 'single' }, session);
    const send = () => must(planned.upload.url, { method: planned.upload.method, headers: planned.upload.headers, body: new Uint8Array(body) });
    const made = (await send()).json as Uploaded;
    await revoke(made.shareId);
    expect((await send()).json.shareId).toBe(made.shareId);
    expectRefusal(await fetchOpen(made), 404, 'share_not_found_or_expired');
  });

  test('a transfer is still deleted with its token', async () => {
    const made = await upload('both', {}, session);
    await revoke(made.shareId);
    await must(`/api/dl/${made.id}`, { method: 'DELETE', headers: { 'x-delete-token': made.deleteToken } });
    expect((await ownShare(made)).state).toBe('revoked');
    expect((await revoke(made.shareId)).status).toBe(200);
  });
});

describe('whose share it is', () => {
  test('the agent that created a share changes and revokes it; another agent, and nobody’s share, are not found', async () => {
    const made = await upload('mine', {}, sender.key);
    expect((await patch(made.shareId, { maxUses: 4 }, sender.key)).json).toMatchObject({ remainingUses: 4, createdByAgentId: sender.agentId });
    for (const [shareId, bearer] of [[made.shareId, receiver.key], [(await upload('owner’s', {}, session)).shareId, sender.key], [(await upload('nobody’s')).shareId, session], [absent, session]] as const) {
      expectRefusal(await patch(shareId, { maxUses: 9 }, bearer), 404, 'share_not_found_or_expired');
      expectRefusal(await revoke(shareId, bearer), 404, 'share_not_found_or_expired');
    }
    expect((await ownShare(made)).policy.maxUses).toBe(4);
    expect((await revoke(made.shareId, sender.key)).status).toBe(200);
    const told = await events(session, { shareId: made.shareId, eventType: 'share.revoked' });
    expect(told).toMatchObject([{ agentId: sender.agentId, actor: { type: 'agent', id: sender.agentId } }]);
  });

  test('the owner changes what their agent created', async () => {
    const made = await upload('theirs', {}, sender.key);
    expect((await patch(made.shareId, { maxUses: 1 })).status).toBe(200);
    expect((await revoke(made.shareId)).status).toBe(200);
  });

  test('without a credential owner_auth_required, with a bad one its refusal; an access token is not accepted', async () => {
    const { shareId } = await upload('locked', {}, session);
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: sender.key })).json;
    const requests = (bearer?: string) => [call('/api/shares', { bearer }), call(`/api/share/${shareId}`, { method: 'PATCH', json: {}, bearer }), call(`/api/share/${shareId}`, { method: 'DELETE', bearer })];
    for (const answer of await Promise.all(requests())) expectRefusal(answer, 401, 'owner_auth_required');
    for (const bearer of [accessToken as string, 'garbage', `${sender.key}x`]) {
      for (const answer of await Promise.all(requests(bearer))) expectRefusal(answer, 401, 'invalid_agent_credential');
    }
    const ended = await signIn();
    await must('/api/owner/session', { method: 'DELETE', bearer: ended });
    for (const answer of await Promise.all(requests(ended))) expectRefusal(answer, 401, 'invalid_owner_credential');
  });

  test('the session cookie changes nothing from another site', async () => {
    const { shareId } = await upload('cookie', {}, session);
    const cookie = (await must('/api/owner/session', { json: exchange.owner })).headers.getSetCookie()[0]!.split(';')[0]!;
    for (const request of [{ method: 'PATCH', json: { maxUses: 1 } }, { method: 'DELETE' }]) {
      expectRefusal(await call(`/api/share/${shareId}`, { ...request, headers: { cookie, origin: 'https://elsewhere.example' } }), 403, 'forbidden_origin');
      expect((await call(`/api/share/${shareId}`, { ...request, headers: { cookie, origin: new URL(baseUrl).origin } })).status).toBe(200);
    }
  });
});
