/** POST /api/upload on a deployment that switched it on: a file and its policy as one form (interface chapter: Transfer plan and creation). */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { byMethod } from '../support/any-method.ts';
import type { Agent, Answer, Uploaded } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { expectRefusal } from '../support/refusals.ts';
import { startSecondGateway } from '../support/second-gateway.ts';
import { askBeforeSending, leaveMidBody } from '../support/unruly-client.ts';

const MiB = 1_024 ** 2;
const mostBytes = 8 * MiB;
let own: OwnStack;
let session: string;
let agent: Agent;

beforeAll(async () => {
  own = await startOwnStack({ gateway: { LEGACY_SURFACES: 'upload' }, policy: { TRANSFER_MAX_BYTES: String(mostBytes), PLAN_TTL_SECONDS: '3' } });
  session = await own.exchange.signIn();
  agent = await own.exchange.makeAgent(session);
});
afterAll(() => own.remove());

type Fields = Readonly<Record<string, string>>;
interface Sent { readonly bearer?: string; readonly headers?: Record<string, string>; readonly fieldsLast?: boolean; readonly name?: string; readonly type?: string }

/** A form as browsers and curl make it. */
function form(bytes: Uint8Array, fields: Fields, { fieldsLast, name = 'a.bin', type = 'application/x-test' }: Sent): FormData {
  const made = new FormData();
  const addFile = () => made.append('file', new Blob([new Uint8Array(bytes)], { type }), name);
  if (fieldsLast) addFile();
  for (const [field, value] of Object.entries(fields)) made.append(field, value);
  if (!fieldsLast) addFile();
  return made;
}

function send(bytes: Uint8Array | string, fields: Fields = {}, how: Sent = {}): Promise<Answer> {
  return own.exchange.call('/api/upload', { body: form(Buffer.from(bytes), fields, how), bearer: how.bearer, ...(how.headers && { headers: how.headers }) });
}

const bigger = randomBytes(100_000);

/** A form written by hand: `parts` are the headers and content of each. */
function raw(parts: readonly [head: string, content: string][], end = '--x--\r\n'): Promise<Answer> {
  const body = parts.map(([head, content]) => `--x\r\n${head}\r\n\r\n${content}\r\n`).join('') + end;
  return own.exchange.call('/api/upload', { body: Buffer.from(body), headers: { 'content-type': 'multipart/form-data; boundary=x' } });
}
const fileHead = (more: string) => `Content-Disposition: form-data; name="file"${more}\r\nContent-Type: text/plain`;
const fieldHead = (name: string) => `Content-Disposition: form-data; name="${name}"`;

describe('POST /api/upload', () => {
  test.each([['nothing', Buffer.alloc(0)], ['one byte', Buffer.from('x')], ['a small file', Buffer.from('hello')], ['a larger one', bigger], ['the most', randomBytes(mostBytes)]])(
    'stores %s, with fields before the file or after it, and answers the upload response', async (_title, bytes) => {
      for (const fieldsLast of [false, true]) {
        const answer = await send(bytes, { ttl: '60' }, { fieldsLast, name: 'grün.bin' });
        expect(answer.status).toBe(201);
        const { id, shareId, downloadUrl, expiresAt, deleteToken } = answer.json as Uploaded;
        expect(answer.json).toEqual({ id, shareId, shareUrl: `${own.exchange.baseUrl}/s/${shareId}`, downloadUrl: `${own.exchange.baseUrl}/api/dl/${id}?share_id=${shareId}`, expiresAt, deleteToken });
        expect(Math.abs(Date.parse(expiresAt) - Date.now() - 60_000)).toBeLessThan(30_000);
        const fetched = await own.exchange.must(downloadUrl);
        expect(fetched.bytes.equals(bytes)).toBe(true);
        expect(fetched.headers.get('content-disposition')).toContain("filename*=UTF-8''gr%C3%BCn.bin");
        expect((await own.exchange.must(`/api/share/${shareId}`)).json).toMatchObject({ type: 'file', filename: 'grün.bin', mimeType: 'application/x-test', size: bytes.length });
      }
    });

  test.each([false, true])('every field of the table becomes the policy of the share (fields after the file: %s)', async (fieldsLast) => {
    const { json } = await send('hello', {
      ttl: '90', max_uses: '2', auth_mode: 'agent', allowed_agent_ids: `${agent.agentId},another`, policy_template_id: 'agent-only', policy_metadata: '{"step":"1"}', metadata: '{"channel":"a"}',
    }, { bearer: session, fieldsLast });
    expect((await own.exchange.must(`/api/share/${json.shareId}`, { bearer: agent.key })).json.policy).toMatchObject({
      mode: 'agent', allowedAgentIds: [agent.agentId, 'another'], maxUses: 2, metadata: { step: '1', channel: 'a' },
    });
    const grant = await own.exchange.grant(json.shareId, agent.key);
    expect((await own.exchange.must(`/api/dl/${json.id}`, { headers: { 'x-access-grant': grant } })).text).toBe('hello');
  });

  test('a passcode and the defaults of a group are taken, too', async () => {
    const { group } = (await own.exchange.must('/api/agent/groups', { bearer: session, json: { name: 'g', members: [agent.agentId], policyDefaults: { mode: 'agent', allowedAgentIds: [agent.agentId], maxUses: 3 } } })).json;
    const grouped = (await send(bigger, { agent_group_id: group.id }, { bearer: session })).json;
    expect((await own.exchange.must(`/api/share/${grouped.shareId}`, { bearer: agent.key })).json.policy).toMatchObject({ maxUses: 3, allowedAgentIds: [agent.agentId] });
    const locked = (await send(bigger, { passcode: 'open sesame' })).json;
    expectRefusal(await own.exchange.call(locked.downloadUrl), 401, 'passcode_required');
    expect((await own.exchange.must(locked.downloadUrl, { headers: { 'x-share-passcode': 'open sesame' } })).bytes.equals(bigger)).toBe(true);
    expectRefusal(await send('x', { agent_group_id: 'agrp_nobody' }, { bearer: session }), 404, 'group_not_found');
  });

  test('the transfer belongs to who sent it, and ends by the delete token or its owner', async () => {
    const byAgent = (await send('a', {}, { bearer: agent.key })).json;
    expect((await own.exchange.must(`/api/share/${byAgent.shareId}`)).json.createdByAgentId).toBe(agent.agentId);
    expect((await own.exchange.must(`/api/dl/${byAgent.id}`, { method: 'DELETE', bearer: agent.key })).json).toEqual({ id: byAgent.id, deleted: true });
    const anonymous = (await send('a')).json;
    await own.exchange.must(`/api/dl/${anonymous.id}`, { method: 'DELETE', headers: { 'x-delete-token': anonymous.deleteToken } });
    expectRefusal(await own.exchange.call(anonymous.downloadUrl), 404, 'share_not_found_or_expired');
    const [stored] = await own.exchange.events(session, { eventType: 'transfer.stored', targetId: byAgent.id });
    expect(stored).toMatchObject({ actor: { type: 'agent', id: agent.agentId }, shareId: byAgent.shareId });
  });

  test.each([['small', Buffer.from('hello')], ['large', bigger]])('the same Idempotency-Key with the same fields and bytes has the same answer, even when its plan has expired; with others it is refused (%s)', async (_title, bytes) => {
    const how: Sent = { headers: { 'idempotency-key': randomUUID() } };
    const first = await send(bytes, { ttl: '600' }, how);
    const again = await send(bytes, { ttl: '600' }, { ...how, fieldsLast: true });
    expect([first.status, again.status, again.json]).toEqual([201, 201, first.json]);
    expectRefusal(await send(bytes, { ttl: '601' }, how), 422, 'idempotency_key_reused');
    expectRefusal(await send(Buffer.concat([bytes.subarray(1), Buffer.from('!')]), { ttl: '600' }, how), 422, 'idempotency_key_reused');
    expectRefusal(await send(bytes, { ttl: '600' }, { ...how, name: 'b.bin' }), 422, 'idempotency_key_reused');
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    expect((await send(bytes, { ttl: '600' }, how)).json).toEqual(first.json);
    const racing = { headers: { 'idempotency-key': randomUUID() } };
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(bytes, {}, racing)));
    expect(new Set(answers.map(({ status, json }) => `${status} ${json.id} ${json.deleteToken}`)).size).toBe(1);
  });

  test('a client that asks before it sends is told to go on', async () => {
    const body = Buffer.from(`--x\r\n${fileHead('; filename="a"')}\r\n\r\nhello\r\n--x--\r\n`);
    const { status, wasTold } = await askBeforeSending(`${own.exchange.baseUrl}/api/upload`, { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x' } }, body);
    expect([status, wasTold]).toEqual([201, true]);
  });
});

describe('a form that is refused', () => {
  const bad: [string, Fields, string][] = [
    ['a ttl below 30', { ttl: '29' }, 'ttl'], ['a ttl that is no number', { ttl: '1e3' }, 'ttl'], ['a ttl beyond the maximum', { ttl: '604801' }, 'ttl'], ['an empty ttl', { ttl: '' }, 'ttl'],
    ['max_uses 0', { max_uses: '0' }, 'max_uses'], ['max_uses -1', { max_uses: '-1' }, 'max_uses'],
    ['an unknown mode', { auth_mode: 'closed' }, 'auth_mode'],
    ['agent mode without agents', { auth_mode: 'agent' }, 'allowed_agent_ids'], ['an empty allow list', { auth_mode: 'agent', allowed_agent_ids: '' }, 'allowed_agent_ids'],
    ['an empty allow list without a mode', { allowed_agent_ids: '' }, 'allowed_agent_ids'],
    ['an agent id with a space', { allowed_agent_ids: 'a,b c' }, 'allowed_agent_ids.1'], ['101 agents', { allowed_agent_ids: Array.from({ length: 101 }, (_, index) => `a${index}`).join(',') }, 'allowed_agent_ids'],
    ['agents of an open share', { auth_mode: 'open', allowed_agent_ids: 'a' }, 'allowed_agent_ids'],
    ['an unknown template', { policy_template_id: 'x' }, 'policy_template_id'],
    ['metadata that is no JSON', { policy_metadata: '{' }, 'policy_metadata'], ['metadata that is a list', { metadata: '["a"]' }, 'metadata'], ['metadata with a number', { policy_metadata: '{"a":1}' }, 'policy_metadata.a'],
    ['a label of __proto__', { metadata: '{"__proto__":"x"}' }, 'metadata'], ['deep metadata', { metadata: `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}` }, 'metadata.a'],
    ['one label with two values', { policy_metadata: '{"a":"1"}', metadata: '{"a":"2"}' }, 'metadata'],
    ['a short passcode', { passcode: 'abc' }, 'passcode'], ['a group id of another kind', { agent_group_id: 'shr_x' }, 'agent_group_id'],
    ['a field in the spelling of JSON', { maxUses: '1' }, 'maxUses'], ['an unknown field', { color: 'red' }, 'color'], ['a field that is too long', { metadata: `{"a":"${'x'.repeat(70_000)}"}` }, 'metadata'],
  ];
  test.each(bad)('%s is named as the sender wrote it', async (_title, fields, name) => {
    for (const how of [{}, { fieldsLast: true }]) {
      for (const bytes of ['x', bigger]) expectRefusal(await send(bytes, fields, how), 400, 'invalid_request', name);
    }
  });

  test('what is not one file with a name', async () => {
    const good: [string, string] = [fileHead('; filename="a.txt"'), 'hello'];
    expect((await raw([good])).status).toBe(201);
    expectRefusal(await raw([]), 400, 'invalid_request', 'file');
    expectRefusal(await raw([[fieldHead('ttl'), '60']]), 400, 'invalid_request', 'file');
    expectRefusal(await raw([good, good]), 400, 'invalid_request', 'file');
    expectRefusal(await raw([[fileHead(''), 'hello']]), 400, 'invalid_request', 'file');
    expectRefusal(await raw([[fileHead('; filename=""'), 'hello']]), 400, 'invalid_request', 'file');
    expectRefusal(await raw([[fileHead('; filename=".."'), 'hello']]), 400, 'invalid_request', 'file');
    expectRefusal(await raw([[good[0].replace('"file"', '"other"'), 'hello']]), 400, 'invalid_request', 'other');
    expectRefusal(await raw([good, [fieldHead('ttl'), '60'], [fieldHead('ttl'), '60']]), 400, 'invalid_request', 'ttl');
    for (const name of ['__proto__', 'constructor']) expectRefusal(await raw([[fieldHead(name), 'x'], good]), 400, 'invalid_request');
    expectRefusal(await raw([...Array.from({ length: 40 }, (_, index): [string, string] => [fieldHead(`f${index}`), 'x']), good]), 400, 'invalid_request', 'f0');
  });

  test('what is no whole form', async () => {
    const good: [string, string] = [fileHead('; filename="a.txt"'), 'hello'];
    expectRefusal(await raw([good], ''), 400, 'invalid_request', 'body');
    expectRefusal(await raw([good], '--x'), 400, 'invalid_request', 'body');
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=', 'multipart/form-data; boundary=other']) {
      expect((await own.exchange.call('/api/upload', { body: Buffer.from('--x\r\n\r\n--x--\r\n'), headers: { 'content-type': type } })).json).toMatchObject({ status: 400, code: 'invalid_request' });
    }
    for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain']) {
      expectRefusal(await own.exchange.call('/api/upload', { body: 'file=x', headers: { 'content-type': type } }), 415, 'unsupported_media_type');
    }
    expectRefusal(await own.exchange.call('/api/upload', { method: 'POST' }), 415, 'unsupported_media_type');
  });

  test.each([
    ['a path', '../../etc/passwd', 'passwd'], ['a path of Windows', 'C:\\\\dir\\\\x.txt', 'x.txt'], ['quotes', 'a\\"b.txt', 'a"b.txt'], ['NFD', 'e\u0301.txt', '\u00e9.txt'],
  ])('a filename with %s: its last part is kept, as browsers mean it', async (_title, sent, kept) => {
    const { json } = await raw([[fileHead(`; filename="${sent}"`), 'hello']]);
    expect((await own.exchange.must(`/api/share/${json.shareId}`)).json.filename).toBe(kept);
  });

  test('an encoded filename is read, a name with control characters or of 256 bytes is not', async () => {
    const { json } = await raw([[fileHead(`; filename*=UTF-8''%e2%82%ac.txt`), 'hello']]);
    expect((await own.exchange.must(`/api/share/${json.shareId}`)).json.filename).toBe('€.txt');
    for (const name of ['a%00b', 'a%0d%0ab', 'a\u0085b', 'x'.repeat(256)]) {
      expectRefusal(await raw([[fileHead(`; filename*=UTF-8''${name}`), 'hello']]), 400, 'invalid_request', 'file');
    }
  });

  test('a file beyond the deployment’s maximum, announced or not', async () => {
    expectRefusal(await send(randomBytes(mostBytes + 1)), 413, 'payload_too_large', 'file');
    expectRefusal(await send(randomBytes(mostBytes + 3 * MiB)), 413, 'payload_too_large', 'file');
  });

  test('a sender that leaves in the middle leaves nothing behind', async () => {
    const before = (await own.exchange.must('/api/shares', { bearer: session })).json.count;
    const body = Buffer.concat([Buffer.from(`--x\r\n${fileHead('; filename="a"')}\r\n\r\n`), bigger]);
    await leaveMidBody(`${own.exchange.baseUrl}/api/upload`, { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x', 'authorization': `Bearer ${session}` }, announced: 300_000 }, body);
    expect((await own.exchange.must('/api/shares', { bearer: session })).json.count).toBe(before);
    const [stored] = await own.exchange.events(session, { eventType: 'transfer.stored' });
    expect(stored?.['data']).not.toMatchObject({ size: 300_000 });
  });

  test('a credential that is sent must be a good one, before anything is stored', async () => {
    expectRefusal(await send(bigger, {}, { bearer: 'garbage' }), 401, 'invalid_agent_credential');
    expectRefusal(await send(bigger, {}, { bearer: `aos_nobody.${'x'.repeat(43)}` }), 401, 'invalid_owner_credential');
    const { status, wasTold } = await askBeforeSending(`${own.exchange.baseUrl}/api/upload`, { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x', 'authorization': 'Bearer garbage' } }, bigger);
    expect([status, wasTold]).toEqual([401, false]);
  });

  test('the session cookie counts on our own pages only', async () => {
    const cookie = { cookie: `aex_session=${session}` };
    expectRefusal(await send('x', {}, { headers: { ...cookie, origin: 'https://elsewhere.example' } }), 403, 'forbidden_origin');
    const sent = (await send('x', {}, { headers: { ...cookie, origin: own.exchange.baseUrl } })).json;
    expect((await own.exchange.must(`/api/share/${sent.shareId}`)).json.createdByUserId).toMatch(/^own_/);
  });
});

describe('a deployment that switched one surface on', () => {
  test('other methods of it answer method_not_allowed, what lies below is nothing, and the multipart lane is alive', async () => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await own.exchange.call('/api/upload', { method });
      expectRefusal(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe('POST');
    }
    expect((await byMethod(`${own.exchange.baseUrl}/api/upload`, 'HEAD')).status).toBe(405);
    expectRefusal(await own.exchange.call('/api/upload/abc', { method: 'POST' }), 404, 'route_not_found');
    expect((await own.exchange.call('/api/upload/multipart/init', { json: { filename: 'a', size: 1 } })).status).toBe(201);
  });

  test('leaves the other one retired', async () => {
    for (const method of ['POST', 'OPTIONS', 'GET']) expectRefusal(await own.exchange.call('/api/tus', { method }), 410, 'transfer_surface_retired');
    expect((await headOf(own.exchange, '/api/tus/mpu_x')).status).toBe(410);
  });

  test('describes it as deprecated', async () => {
    const { paths } = (await own.exchange.must('/openapi.json')).json;
    expect(paths['/api/upload'].post).toMatchObject({ deprecated: true, requestBody: { content: { 'multipart/form-data': {} } }, responses: { 201: {} } });
    expect(Object.keys(paths['/api/tus'].post.responses)).toEqual(['410']);
    expect((await own.exchange.must('/docs')).text.includes('max_uses')).toBe(true);
  });

  test.each(['uploads', 'upload,', 'on', 'UPLOAD'])('LEGACY_SURFACES=%s stops the start', async (value) => {
    await expect(startSecondGateway(own.stack, { LEGACY_SURFACES: value })).rejects.toThrow(/ended with 78/);
  });
});

describe('a deployment where nobody may create without a credential', () => {
  let strict: OwnStack;
  beforeAll(async () => { strict = await startOwnStack({ gateway: { LEGACY_SURFACES: 'upload' }, policy: { ANONYMOUS_CREATE: 'deny' } }); });
  afterAll(() => strict.remove());

  test('refuses an anonymous form before its file is sent, and takes that of an owner', async () => {
    const address = `${strict.exchange.baseUrl}/api/upload`;
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const refused = await askBeforeSending(address, { method: 'POST', headers }, bigger);
    expect([refused.status, JSON.parse(refused.text).code, refused.wasTold]).toEqual([401, 'agent_auth_required', false]);
    const owner = await strict.exchange.signIn();
    expect((await strict.exchange.call('/api/upload', { body: form(bigger, {}, {}), bearer: owner })).status).toBe(201);
  });
});
