/** Sending the same again: one operation id, one change, one answer (interface chapters: What the service does, 8; Limits). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Answer } from '../support/exchange.ts';
import { multipartLane } from '../support/multipart-lane.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must, upload } = exchange;
const lane = multipartLane(exchange);
let session: string;
let agent: Agent;
let other: Agent;
let shareId: string;
let otherShareId: string;

beforeAll(async () => {
  session = await exchange.signIn();
  agent = await exchange.makeAgent(session);
  other = await exchange.makeAgent(session);
  const allowedAgentIds = [agent.agentId, other.agentId];
  shareId = (await upload('x', { allowedAgentIds }, session)).shareId;
  otherShareId = (await upload('x', { allowedAgentIds }, session)).shareId;
});

interface Creation {
  readonly path: string;
  /** A request, and one that differs from it. */
  readonly fields: () => object;
  readonly changed: () => object;
  readonly bearer: () => string;
  /** Another caller who may ask the same. */
  readonly otherBearer?: () => string;
  /** What only one change can have made. */
  readonly made: (json: any) => string;
}

const plannedFields = { filename: 'a.txt', size: 3, ttl: 60 };
const creations: [string, Creation][] = [
  ['POST /api/transfer-plan', {
    path: '/api/transfer-plan', fields: () => plannedFields, changed: () => ({ ...plannedFields, size: 4 }),
    bearer: () => agent.key, otherBearer: () => other.key, made: ({ planId }) => planId,
  }],
  ['POST /api/upload/multipart/init', {
    path: '/api/upload/multipart/init', fields: () => plannedFields, changed: () => ({ ...plannedFields, ttl: 61 }),
    bearer: () => agent.key, otherBearer: () => other.key, made: ({ uploadId }) => uploadId,
  }],
  ['POST /api/agent/keys', {
    path: '/api/agent/keys', fields: () => ({ name: 'builder' }), changed: () => ({ name: 'another' }),
    bearer: () => session, made: ({ key }) => key,
  }],
  ['POST /api/agent/grants', {
    path: '/api/agent/grants', fields: () => ({ shareId }), changed: () => ({ shareId: otherShareId }),
    bearer: () => agent.key, otherBearer: () => other.key, made: ({ accessToken }) => accessToken,
  }],
];

const send = ({ path }: Creation, fields: object, bearer: string, headers: Record<string, string> = {}): Promise<Answer> => call(path, { json: fields, bearer, headers });
const keyed = (key: string) => ({ 'Idempotency-Key': key });
const newKey = () => `op-${randomUUID()}`;

describe.each(creations)('%s with an operation id', (_route, creation) => {
  const { fields, changed, bearer } = creation;

  test('the same request again has the same answer, secrets included', async () => {
    const key = newKey();
    const first = await send(creation, fields(), bearer(), keyed(key));
    expect(first.status).toBe(201);
    for (const _time of [1, 2]) {
      const again = await send(creation, fields(), bearer(), keyed(key));
      expect({ status: again.status, json: again.json }).toEqual({ status: 201, json: first.json });
    }
  });

  test('header and body are two ways to say it', async () => {
    const operationId = newKey();
    const first = await send(creation, { ...fields(), operationId }, bearer());
    expect(first.status).toBe(201);
    for (const [body, headers] of [[fields(), keyed(operationId)], [{ operationId, ...fields() }, keyed(operationId)], [{ ...fields(), operationId }, {}]] as const) {
      expect((await send(creation, body, bearer(), headers)).json).toEqual(first.json);
    }
  });

  test('the order of the fields does not matter', async () => {
    const key = newKey();
    const first = await send(creation, fields(), bearer(), keyed(key));
    const reversed = Object.fromEntries(Object.entries(fields()).reverse());
    expect((await send(creation, reversed, bearer(), keyed(key))).json).toEqual(first.json);
  });

  test('another request under the same id is refused, and the first keeps its answer', async () => {
    const key = newKey();
    const first = await send(creation, fields(), bearer(), keyed(key));
    expectRefusal(await send(creation, changed(), bearer(), keyed(key)), 422, 'idempotency_key_reused');
    expect((await send(creation, fields(), bearer(), keyed(key))).json).toEqual(first.json);
  });

  test('without an id, each request is another', async () => {
    const [one, two] = [await send(creation, fields(), bearer()), await send(creation, fields(), bearer())];
    expect(creation.made(one.json)).not.toBe(creation.made(two.json));
  });

  test('ten at once make one change and have one answer', async () => {
    const key = newKey();
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(creation, fields(), bearer(), keyed(key))));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(answers.map(({ json }) => creation.made(json))).size).toBe(1);
    for (const { json } of answers) expect(json).toEqual(answers[0]!.json);
  });

  test('ten at once with two requests: one of them is made, the other refused', async () => {
    const key = newKey();
    const answers = await Promise.all(Array.from({ length: 10 }, (_, index) => send(creation, index % 2 ? fields() : changed(), bearer(), keyed(key))));
    expect(new Set(answers.filter(({ status }) => status === 201).map(({ json }) => creation.made(json))).size).toBe(1);
    for (const answer of answers.filter(({ status }) => status !== 201)) expectRefusal(answer, 422, 'idempotency_key_reused');
  });

  if (creation.otherBearer) test('another caller has ids of its own', async () => {
    const key = newKey();
    const mine = await send(creation, fields(), bearer(), keyed(key));
    const theirs = await send(creation, fields(), creation.otherBearer!(), keyed(key));
    expect(theirs.status).toBe(201);
    expect(creation.made(theirs.json)).not.toBe(creation.made(mine.json));
    expect((await send(creation, changed(), creation.otherBearer!(), keyed(newKey()))).status).toBe(201);
  });

  test('header and body that differ are refused', async () => {
    expectRefusal(await send(creation, { ...fields(), operationId: newKey() }, bearer(), keyed(newKey())), 400, 'invalid_request', 'operationId');
  });

  test('an id that is no id is refused', async () => {
    for (const wrong of ['', 'a b', 'a\u00e9', 'x'.repeat(256), 'a\tb']) expectRefusal(await send(creation, fields(), bearer(), keyed(wrong)), 400, 'invalid_request', 'Idempotency-Key');
    for (const wrong of ['', 'a b', 'ä', 'x'.repeat(256), 'a\0', 'a\nb', 7, null, {}, ['a']]) {
      expectRefusal(await send(creation, { ...fields(), operationId: wrong }, bearer()), 400, 'invalid_request', 'operationId');
    }
    expect((await send(creation, fields(), bearer(), keyed(newKey().padEnd(255, '~')))).status).toBe(201);
  });

  test('a request that was refused has used nothing: the same id may be used for one that is good', async () => {
    const key = newKey();
    expect((await send(creation, { ...fields(), colour: 'red' }, bearer(), keyed(key))).status).toBe(400);
    expectRefusal(await send(creation, fields(), 'garbage', keyed(key)), 401, creation.path === '/api/agent/keys' ? 'invalid_owner_credential' : 'invalid_agent_credential');
    expect((await send(creation, fields(), bearer(), keyed(key))).status).toBe(201);
  });
});

describe('one change for one operation id', () => {
  test('ten requests for a key make one key', async () => {
    const agentId = `agent-${randomUUID()}`;
    const key = newKey();
    await Promise.all(Array.from({ length: 10 }, () => must('/api/agent/keys', { bearer: session, json: { agentId, operationId: key } })));
    expect((await must(`/api/agent/keys?agentId=${agentId}`, { bearer: session })).json.count).toBe(1);
  });

  test('ten requests for a grant issue one, and it works once', async () => {
    const stored = await upload('x', { allowedAgentIds: [agent.agentId] }, session);
    const key = newKey();
    const tokens = await Promise.all(Array.from({ length: 10 }, async () => (await must('/api/agent/grants', { bearer: agent.key, json: { shareId: stored.shareId }, headers: keyed(key) })).json.accessToken as string));
    const fetches = await Promise.all(tokens.map((token) => call(`/api/dl/${stored.id}`, { headers: { 'X-Access-Grant': token } })));
    expect(fetches.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const answer of fetches.filter(({ status }) => status !== 200)) expectRefusal(answer, 409, 'grant_already_used');
    expect(await exchange.events(session, { eventType: 'grant.issued', shareId: stored.shareId })).toHaveLength(1);
  });

  test('ten inits begin one upload, which completes to one delete token', async () => {
    const json = { filename: 'a', size: 3, operationId: newKey() };
    const begun = await Promise.all(Array.from({ length: 10 }, () => must('/api/upload/multipart/init', { json, bearer: session })));
    const { uploadId, transferId } = begun[0]!.json as { uploadId: string; transferId: string };
    await lane.part(uploadId, 1, Buffer.from('abc'), { bearer: session });
    const key = newKey();
    const completed = await Promise.all([1, 2, 3].map(() => lane.complete(uploadId, {}, { bearer: session, headers: keyed(key) })));
    expect(new Set(completed.map(({ text }) => text)).size).toBe(1);
    expect(completed[0]!.json.deleteToken).toMatch(/^dlt_/);
    expect(await exchange.events(session, { eventType: 'upload.initialized', targetId: transferId })).toHaveLength(1);
  });

  test('an id says nothing where nothing is created', async () => {
    const { shareId: open } = await upload('x');
    expect((await call(`/api/share/${open}`, { headers: keyed('a b') })).status).toBe(200);
    const { uploadId } = await lane.begin(3);
    expectRefusal(await call('/api/upload/multipart/abort', { json: { uploadId, operationId: 'x' } }), 400, 'invalid_request', 'operationId');
  });

  test('an anonymous sender may use one too', async () => {
    const json = { filename: 'a', operationId: newKey() };
    const first = await must('/api/transfer-plan', { json });
    expect((await must('/api/transfer-plan', { json })).json).toEqual(first.json);
    expect((await must('/api/transfer-plan', { json, bearer: agent.key })).json.planId).not.toBe(first.json.planId);
  });
});

describe('POST /api/upload/multipart/complete with an operation id', () => {
  test('the id of one completion is refused for another', async () => {
    const key = newKey();
    const [one, two] = [await lane.begin(3), await lane.begin(3)];
    for (const { uploadId } of [one, two]) await lane.part(uploadId, 1, Buffer.from('abc'));
    expect((await lane.complete(one.uploadId, {}, { headers: keyed(key) })).status).toBe(201);
    expectRefusal(await lane.complete(two.uploadId, {}, { headers: keyed(key) }), 422, 'idempotency_key_reused');
  });
});
