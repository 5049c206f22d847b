/** What is recorded: every event that a caller can cause, once, with whom it concerns (interface chapter: Events). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { multipartLane } from '../support/multipart-lane.ts';

const exchange = sharedExchange();
const { owner, call, signIn, events } = exchange;
const lane = multipartLane(exchange);

/** An event as the record shows it. */
type Event = Record<string, unknown>;

/** The request ids of the steps of the main job, by a name for each; so that each step finds what it caused. */
const requestIds: Record<string, string> = {};
/** Tokens that were shown to anybody: none may be in the record. */
const secrets: string[] = [];

let session: string;
let ownerId: string;
let agent: Agent;
let stranger: Agent;
let shared: Uploaded;
let open: Uploaded;
let parts: Uploaded & { uploadId: string };
let aborted: { uploadId: string; transferId: string };
let brief: Uploaded;
let begunAt: string;

/** One step of the main job. Its status is stated, so that a denial is one. */
async function step(name: string, status: number, path: string, request: Parameters<typeof call>[1] = {}): Promise<any> {
  const id = `step-${name.replaceAll(' ', '-')}-${randomUUID().slice(0, 8)}`;
  requestIds[name] = id;
  const answer = await call(path, { ...request, headers: { ...request?.headers, 'x-request-id': id } });
  if (answer.status !== status) throw new Error(`${name}: ${answer.status} ${answer.text}`);
  for (const [, token] of answer.text.matchAll(/"((?:agk|aat|aos|agrt|dlt)_[^"]+)"/g)) secrets.push(token!);
  return answer.json ?? answer.text;
}

async function store(name: string, content: string, fields: Record<string, unknown>, bearer?: string): Promise<Uploaded> {
  const { plan, upload } = await step(`plan ${name}`, 201, '/api/transfer-plan', { bearer, json: { filename: `${name}.txt`, size: content.length, lane: 'single', ...fields } });
  secrets.push(plan);
  return step(`store ${name}`, 201, upload.url, { method: 'PUT', headers: upload.headers, body: content });
}

beforeAll(async () => {
  session = await signIn();
  ownerId = (await call('/api/owner/session', { bearer: session })).json.owner.id;
  begunAt = new Date().toISOString();
  await step('wrong password', 401, '/api/owner/session', { json: { ...owner, password: 'wrong' } });
  const { token } = await step('sign in', 201, '/api/owner/session', { json: owner });
  agent = await step('make key', 201, '/api/agent/keys', { bearer: token, json: { agentId: `agent-${randomUUID()}` } });
  stranger = await step('make strange key', 201, '/api/agent/keys', { bearer: token, json: { agentId: `agent-${randomUUID()}` } });
  brief = await store('brief', 'gone soon', { ttl: 30 }, agent.key);

  const { accessToken } = await step('authenticate', 200, '/api/agent/auth', { method: 'POST', bearer: agent.key });
  shared = await store('shared', 'for one agent', { authMode: 'agent', allowedAgentIds: [agent.agentId], maxUses: 2 }, agent.key);
  const { id, shareId } = shared;
  await step('resolve', 200, `/api/share/${shareId}`, { bearer: accessToken });
  await step('resolve without key', 401, `/api/share/${shareId}`);
  await step('resolve as stranger', 403, `/api/share/${shareId}`, { bearer: stranger.key });
  await step('grant to stranger', 403, '/api/agent/grants', { bearer: stranger.key, json: { shareId } });
  const { accessToken: first } = await step('grant', 201, '/api/agent/grants', { bearer: agent.key, json: { shareId } });
  const { accessToken: second } = await step('second grant', 201, '/api/agent/grants', { bearer: agent.key, json: { shareId } });
  const { accessToken: third } = await step('third grant', 201, '/api/agent/grants', { bearer: agent.key, json: { shareId } });
  const fetchWith = (name: string, status: number, grant: string) => step(name, status, `/api/dl/${id}`, { headers: { 'x-access-grant': grant } });
  await step('fetch without grant', 401, `/api/dl/${id}?share_id=${shareId}`);
  await fetchWith('fetch', 200, first);
  await fetchWith('fetch again', 409, first);
  await fetchWith('last fetch', 200, second);
  await fetchWith('fetch beyond cap', 410, third);
  await step('grant beyond cap', 410, '/api/agent/grants', { bearer: agent.key, json: { shareId } });

  open = await store('open', 'for all, once', { maxUses: 1 }, token);
  await step('resolve open', 200, `/api/share/${open.shareId}`);
  await step('open fetch', 200, open.downloadUrl);
  await step('open fetch beyond cap', 410, open.downloadUrl);

  const begun = await lane.begin(5, {}, { bearer: agent.key, headers: { 'x-request-id': (requestIds['begin'] = `begin-${randomUUID()}`) } });
  await lane.part(begun.uploadId, 1, Buffer.from('parts'), { bearer: agent.key });
  parts = { ...begun, ...(await step('complete', 201, '/api/upload/multipart/complete', { bearer: agent.key, json: { uploadId: begun.uploadId } })) };
  aborted = await lane.begin(5, {}, { bearer: token });
  await step('abort', 200, '/api/upload/multipart/abort', { bearer: token, json: { uploadId: aborted.uploadId } });

  await step('delete', 200, `/api/dl/${parts.id}`, { method: 'DELETE', headers: { 'x-delete-token': parts.deleteToken } });
  await step('delete again', 200, `/api/dl/${parts.id}`, { method: 'DELETE', bearer: token });
  await step('revoke key', 200, `/api/agent/keys/${stranger.keyId}`, { method: 'DELETE', bearer: token });
  await step('revoke again', 200, `/api/agent/keys/${stranger.keyId}`, { method: 'DELETE', bearer: token });
  await step('sign out', 200, '/api/owner/session', { method: 'DELETE', bearer: token });
}, 60_000);

/** Waits until the record holds an event of this type that this step caused. */
async function caused(name: string, eventType: string): Promise<Event[]> {
  const end = Date.now() + 20_000;
  for (;;) {
    const found = (await events(session, { eventType, from: begunAt })).filter(({ requestId }) => requestId === requestIds[name]);
    if (found.length > 0 || Date.now() > end) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const byOwner = () => ({ actor: { type: 'owner', id: ownerId }, agentId: null });
const byAgent = () => ({ actor: { type: 'agent', id: agent.agentId }, agentId: agent.agentId });
const byStranger = () => ({ actor: { type: 'agent', id: stranger.agentId }, agentId: stranger.agentId });
const byAnyone = () => ({ actor: { type: 'anonymous', id: null }, agentId: null });
const ofFile = ({ id, shareId }: Uploaded) => ({ targetType: 'file', targetId: id, shareId });
const ofShare = ({ shareId }: Uploaded) => ({ targetType: 'share', targetId: shareId, shareId });
const ofKey = ({ keyId }: Agent) => ({ targetType: 'agent_key', targetId: keyId, shareId: null });
const ofNothing = { targetType: null, targetId: null, shareId: null };
const ofGrant = () => ({ targetType: 'grant', targetId: expect.stringMatching(/^\w+$/), shareId: shared.shareId });
const denied = (code: string) => ({ outcome: 'denied', code });

/** Step -> type of the event that it causes -> what the event says. */
const expected: [string, string, () => Event][] = [
  ['wrong password', 'owner.denied', () => ({ ...byAnyone(), ...ofNothing, ...denied('invalid_owner_credential') })],
  ['sign in', 'owner.signed_in', () => ({ ...byOwner(), ...ofNothing })],
  ['sign out', 'owner.signed_out', () => ({ ...byOwner(), ...ofNothing })],
  ['make key', 'agent_key.created', () => ({ ...byOwner(), ...ofKey(agent), agentId: agent.agentId })],
  ['revoke key', 'agent_key.revoked', () => ({ ...byOwner(), ...ofKey(stranger), agentId: stranger.agentId })],
  ['authenticate', 'agent.authenticated', () => ({ ...byAgent(), ...ofKey(agent) })],
  ['plan shared', 'policy.planned', () => ({ ...byAgent(), targetType: 'policy', targetId: expect.stringMatching(/^pln_/), shareId: null })],
  ['plan open', 'policy.planned', () => ({ ...byOwner(), targetType: 'policy', targetId: expect.stringMatching(/^pln_/), shareId: null })],
  ['store shared', 'transfer.stored', () => ({ ...byAgent(), ...ofFile(shared) })],
  ['store shared', 'share.created', () => ({ ...byAgent(), ...ofShare(shared) })],
  ['store open', 'transfer.stored', () => ({ ...byOwner(), ...ofFile(open) })],
  ['store open', 'share.created', () => ({ ...byOwner(), ...ofShare(open) })],
  ['resolve', 'share.resolved', () => ({ ...byAgent(), ...ofShare(shared) })],
  ['resolve open', 'share.resolved', () => ({ ...byAnyone(), ...ofShare(open) })],
  ['resolve without key', 'share.denied', () => ({ ...byAnyone(), ...ofShare(shared), ...denied('agent_auth_required') })],
  ['resolve as stranger', 'share.denied', () => ({ ...byStranger(), ...ofShare(shared), ...denied('agent_not_allowed_for_share') })],
  ['grant to stranger', 'grant.denied', () => ({ ...byStranger(), ...ofShare(shared), ...denied('agent_not_allowed_for_share') })],
  ['grant beyond cap', 'grant.denied', () => ({ ...byAgent(), ...ofShare(shared), ...denied('share_use_limit_exceeded') })],
  ['grant', 'grant.issued', () => ({ ...byAgent(), ...ofGrant() })],
  ['fetch without grant', 'share.denied', () => ({ ...byAnyone(), ...ofShare(shared), ...denied('grant_required') })],
  ['fetch', 'grant.redeemed', () => ({ ...byAgent(), ...ofGrant() })],
  ['fetch', 'transfer.fetched', () => ({ ...byAgent(), ...ofFile(shared) })],
  ['fetch again', 'share.denied', () => ({ ...byAgent(), ...ofShare(shared), ...denied('grant_already_used') })],
  ['last fetch', 'share.exhausted', () => ({ ...byAgent(), ...ofShare(shared) })],
  ['fetch beyond cap', 'share.denied', () => ({ ...byAgent(), ...ofShare(shared), ...denied('share_use_limit_exceeded') })],
  ['open fetch', 'transfer.fetched', () => ({ ...byAnyone(), ...ofFile(open) })],
  ['open fetch', 'share.exhausted', () => ({ ...byAnyone(), ...ofShare(open) })],
  ['open fetch beyond cap', 'share.denied', () => ({ ...byAnyone(), ...ofShare(open), ...denied('share_use_limit_exceeded') })],
  ['begin', 'upload.initialized', () => ({ ...byAgent(), ...ofFile(parts), data: expect.objectContaining({ uploadId: parts.uploadId }) })],
  ['complete', 'upload.completed', () => ({ ...byAgent(), ...ofFile(parts), data: expect.objectContaining({ uploadId: parts.uploadId }) })],
  ['complete', 'transfer.stored', () => ({ ...byAgent(), ...ofFile(parts) })],
  ['complete', 'share.created', () => ({ ...byAgent(), ...ofShare(parts) })],
  ['abort', 'upload.aborted', () => ({ ...byOwner(), targetType: 'file', targetId: aborted.transferId, shareId: expect.stringMatching(/^shr_/), data: expect.objectContaining({ uploadId: aborted.uploadId }) })],
  ['delete', 'transfer.deleted', () => ({ actor: { type: 'anonymous', id: null }, agentId: agent.agentId, ...ofFile(parts) })],
  ['delete', 'share.ended', () => ({ actor: { type: 'service', id: 'storage' }, agentId: null, ...ofShare(parts) })],
];

describe('every event of the main job', () => {
  test.each(expected)('%s: one %s', async (name, eventType, facts) => {
    const found = await caused(name, eventType);
    expect(found).toHaveLength(1);
    expect(found[0]).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-/), eventType, occurredAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/), ownerId, outcome: 'allowed',
      requestId: requestIds[name], ip: expect.stringMatching(/^[0-9a-f.:]+$/), data: expect.any(Object), ...facts(),
    });
    expect(Math.abs(Date.parse(found[0]!['occurredAt'] as string) - Date.now())).toBeLessThan(300_000);
  });

  test('a step that changed nothing, or changed it again, recorded no change', async () => {
    for (const [name, eventType] of [['delete again', 'transfer.deleted'], ['delete again', 'share.ended'], ['revoke again', 'agent_key.revoked'], ['fetch beyond cap', 'transfer.fetched'], ['fetch', 'share.exhausted']]) {
      expect((await events(session, { eventType: eventType!, from: begunAt })).filter(({ requestId }) => requestId === requestIds[name!]), `${name} ${eventType}`).toEqual([]);
    }
    const ofParts = await events(session, { shareId: parts.shareId });
    expect(ofParts.map(({ eventType }) => eventType).sort()).toEqual(['share.created', 'share.ended', 'transfer.deleted', 'transfer.stored', 'upload.completed', 'upload.initialized']);
  });

  test('what expires is recorded once for the transfer and once for the share', async () => {
    const gone = (found: Event[]) => found.filter(({ eventType }) => ['transfer.expired', 'share.expired'].includes(eventType as string));
    const end = Date.now() + 80_000;
    let found: Event[] = [];
    while (gone(found).length < 2 && Date.now() < end) {
      found = await events(session, { shareId: brief.shareId });
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    expect(gone(found).map(({ eventType, targetId, actor, outcome }) => ({ eventType, targetId, actor, outcome })).sort((a, b) => String(a.eventType).localeCompare(String(b.eventType)))).toEqual([
      { eventType: 'share.expired', targetId: brief.shareId, actor: { type: 'service', id: 'policy' }, outcome: 'allowed' },
      { eventType: 'transfer.expired', targetId: brief.id, actor: { type: 'service', id: 'storage' }, outcome: 'allowed' },
    ]);
    for (const event of gone(found)) expect(Date.parse(event['occurredAt'] as string)).toBeGreaterThanOrEqual(Date.parse(brief.expiresAt));
  }, 100_000);

  test('no token, key or password that was shown is in any event', async () => {
    const record: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { text: string; json: { nextCursor: string | null } } = await exchange.must(`/api/audit?limit=100&from=${begunAt}${cursor && `&cursor=${cursor}`}`, { bearer: session });
      record.push(page.text);
      cursor = page.json.nextCursor;
    }
    const all = record.join('\n');
    expect(secrets.length).toBeGreaterThan(10);
    for (const secret of [...secrets, ...secrets.map((token) => token.slice(token.indexOf('.') + 1)), owner.password, session]) expect(all.includes(secret), secret.slice(0, 12)).toBe(false);
    expect(all).not.toMatch(/"(agk|aat|aos|agrt|dlt)_/);
  });
});
