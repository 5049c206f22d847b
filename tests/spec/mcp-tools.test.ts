/** The six tools: what they take and return, and that they are the REST calls by another way (interface chapter: Hosted MCP). */
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { mcpOf } from '../support/mcp.ts';

const exchange = sharedExchange();
const { baseUrl, call, must } = exchange;
const { request, tool, mustTool } = mcpOf(exchange);

let session: string;
let sender: Agent;
let receiver: Agent;
let outsider: Agent;
beforeAll(async () => {
  session = await exchange.signIn();
  [sender, receiver, outsider] = await Promise.all([exchange.makeAgent(session), exchange.makeAgent(session), exchange.makeAgent(session)]) as [Agent, Agent, Agent];
});
const forReceiver = () => ({ authMode: 'agent', allowedAgentIds: [receiver.agentId] });

test('tools/list describes the six tools and every argument of theirs', async () => {
  const { tools } = (await request('tools/list')).json.result;
  expect(tools.map(({ name }: { name: string }) => name)).toEqual(['upload_text', 'upload_json', 'resolve_share', 'request_grant', 'download_link', 'fetch_share']);
  for (const { name, title, description, inputSchema, outputSchema, annotations } of tools) {
    expect(title.length * description.length, name).toBeGreaterThan(1_000);
    expect(inputSchema, name).toMatchObject({ type: 'object', additionalProperties: false });
    expect(outputSchema, name).toMatchObject({ type: 'object', additionalProperties: false });
    expect(Object.keys(annotations).sort()).toEqual(['destructiveHint', 'idempotentHint', 'openWorldHint', 'readOnlyHint', 'title']);
    const silent = Object.entries<{ description?: string }>(inputSchema.properties).filter(([, schema]) => !schema.description);
    expect(silent, name).toEqual([]);
  }
  expect(tools.filter(({ annotations }: any) => annotations.readOnlyHint).map(({ name }: any) => name)).toEqual(['resolve_share', 'download_link']);
});

describe('from agent to agent', () => {
  test('text goes by upload_text, resolve_share, request_grant, download_link and one real download', async () => {
    const sent: Uploaded = await mustTool('upload_text', { text: 'für dich ✓', filename: 'note.md', mimeType: 'text/markdown', ttl: 600, policyMetadata: { step: 'review' }, ...forReceiver() }, sender.key);
    const resolved = await mustTool('resolve_share', { shareId: sent.shareId }, receiver.key);
    expect(resolved).toEqual((await must(`/api/share/${sent.shareId}`, { bearer: receiver.key })).json);
    expect(resolved).toMatchObject({ filename: 'note.md', mimeType: 'text/markdown', size: 13, createdByAgentId: sender.agentId, policy: { mode: 'agent', allowedAgentIds: [receiver.agentId], metadata: { step: 'review' } } });
    const grant = await mustTool('request_grant', { shareId: sent.shareId }, receiver.key);
    expect(grant).toMatchObject({ targetType: 'file', targetId: sent.id, accessToken: expect.stringMatching(/^agrt_/) });
    const link = await mustTool('download_link', { shareId: sent.shareId, accessGrant: grant.accessToken });
    expect(link).toEqual({ url: `${baseUrl}/api/dl/${sent.id}`, method: 'GET', headers: { 'X-Access-Grant': grant.accessToken }, expiresAt: grant.expiresAt });
    expect((await call(link.url, link)).text).toBe('für dich ✓');
    expect((await call(link.url, link)).json.code).toBe('grant_already_used');
    const { accessToken: accessGrant } = await mustTool('request_grant', { shareId: sent.shareId }, receiver.key);
    expect((await call(link.url, await mustTool('download_link', { shareId: sent.shareId, accessGrant }))).status).toBe(200);
  });

  test('others meet the codes that REST answers', async () => {
    const { shareId } = await mustTool('upload_text', { text: 'secret', ...forReceiver() }, sender.key);
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: receiver.key })).json;
    const codes = async (name: string, ...bearers: (string | undefined)[]) => Promise.all(bearers.map(async (bearer) => (await tool(name, { shareId }, bearer)).problem?.code));
    expect(await codes('resolve_share', undefined, outsider.key, session, 'garbage', accessToken)).toEqual(['agent_auth_required', 'agent_not_allowed_for_share', 'invalid_agent_credential', 'invalid_agent_credential', undefined]);
    expect(await codes('request_grant', undefined, outsider.key, session, 'garbage', accessToken)).toEqual(['agent_auth_required', 'agent_not_allowed_for_share', 'invalid_agent_credential', 'invalid_agent_credential', 'invalid_agent_credential']);
    expect(await codes('fetch_share', undefined, outsider.key, session, 'garbage', accessToken)).toEqual(['agent_auth_required', 'agent_not_allowed_for_share', 'invalid_agent_credential', 'invalid_agent_credential', 'invalid_agent_credential']);
    expect(await codes('download_link', undefined, receiver.key)).toEqual(['grant_required', 'grant_required']);
  });

  test('what happened is in the audit record as if it had come by REST', async () => {
    const { shareId } = await mustTool('upload_text', { text: 'recorded', ...forReceiver() }, sender.key);
    await mustTool('fetch_share', { shareId }, receiver.key);
    const events = await exchange.events(session, { shareId }, 4);
    expect(events.map(({ eventType }) => eventType)).toEqual(expect.arrayContaining(['share.created', 'grant.issued', 'grant.redeemed', 'transfer.fetched']));
    expect(events.find(({ eventType }) => eventType === 'transfer.fetched')).toMatchObject({ actor: { type: 'agent', id: receiver.agentId } });
  });
});

describe('upload_text and upload_json', () => {
  test('answer the Upload response, the same as text, and a link to the share', async () => {
    const { value, content } = await tool('upload_text', { text: 'a' }, session);
    expect(value).toEqual({
      id: expect.stringMatching(/^trf_/), shareId: expect.stringMatching(/^shr_/), shareUrl: `${baseUrl}/s/${value.shareId}`, downloadUrl: `${baseUrl}/api/dl/${value.id}?share_id=${value.shareId}`,
      expiresAt: expect.stringMatching(/Z$/), deleteToken: expect.stringMatching(/^dlt_/),
    });
    expect(JSON.parse(content[0]!.text!)).toEqual(value);
    expect(content[1]).toMatchObject({ type: 'resource_link', uri: value.shareUrl, name: 'text.txt' });
    const { headers, text } = await call(value.downloadUrl);
    expect([text, headers.get('content-type'), headers.get('content-disposition')]).toEqual(['a', 'text/plain; charset=utf-8', expect.stringContaining('text.txt')]);
    expect((await call(`/api/dl/${value.id}`, { method: 'DELETE', headers: { 'x-delete-token': value.deleteToken } })).status).toBe(200);
  });

  test.each([['1 character', 1], ['32 KiB', 32_768], ['32 KiB and one', 32_769], ['a megabyte', 500_000]])('keep %s byte for byte', async (_title, length) => {
    const text = `\u0000${'é✓a\r\n'.repeat(length)}`.slice(0, length);
    const { downloadUrl } = await mustTool('upload_text', { text });
    expect((await call(downloadUrl)).bytes.equals(Buffer.from(text))).toBe(true);
  });

  test('keep a JSON value as it was written: numbers, order, escapes, null', async () => {
    const value = '{"big":9007199254740993,"huge":1e400,"minus":-0,"long":0.1234567890123456789,"list":[1.5,null,true,""],"2":1,"1":2,"é":"\\ud800"}';
    const post = (args: string) => call('/mcp', { method: 'POST', headers: { 'content-type': 'application/json' }, body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload_json","arguments":${args}}}` });
    const { structuredContent: sent } = (await post(`{"value":${value},"filename":"exact.json"}`)).json.result;
    const { text, headers } = await call(sent.downloadUrl);
    expect(text).toBe('{"1":2,"2":1,"big":9007199254740993,"huge":1e400,"minus":-0,"long":0.1234567890123456789,"list":[1.5,null,true,""],"é":"\\ud800"}');
    expect(headers.get('content-type')).toBe('application/json');
    const { answer } = await tool('fetch_share', { shareId: sent.shareId });
    for (const number of ['9007199254740993', '1e400', '"minus":-0', '0.1234567890123456789']) expect(answer.text).toContain(number);
  });

  test.each(['null', '5', '""', '[]', '{}', 'false'])('take %s as a JSON value', async (value) => {
    const { downloadUrl } = await mustTool('upload_json', { value: JSON.parse(value) });
    expect((await call(downloadUrl)).text).toBe(value);
  });

  test('apply every policy field as a plan does', async () => {
    const policy = { ttl: 60, maxUses: 3, authMode: 'agent', allowedAgentIds: [receiver.agentId], policyMetadata: { a: 'b' }, passcode: 'open sesame' };
    const { shareId } = await mustTool('upload_json', { value: 1, ...policy }, sender.key);
    const { policy: resolved } = await mustTool('resolve_share', { shareId }, receiver.key);
    expect(resolved).toMatchObject({ mode: 'agent', maxUses: 3, allowedAgentIds: [receiver.agentId], metadata: { a: 'b' }, passcodeRequired: true });
    const template = await mustTool('upload_text', { text: 'a', policyTemplateId: 'public-once' });
    expect((await mustTool('resolve_share', { shareId: template.shareId })).policy.maxUses).toBe(1);
  });

  test.each([10, 40_000])('the same operationId with the same %d characters answers the same share, with others idempotency_key_reused', async (length) => {
    const args = { text: 'a'.repeat(length), operationId: `mcp-${length}-${Date.now()}` };
    const first = await mustTool('upload_text', args, sender.key);
    expect(await Promise.all([1, 2, 3].map(() => mustTool('upload_text', args, sender.key)))).toEqual([first, first, first]);
    expect((await tool('upload_text', { ...args, text: 'b'.repeat(length) }, sender.key)).problem).toMatchObject({ status: 422, code: 'idempotency_key_reused' });
    expect((await mustTool('upload_text', args, receiver.key)).shareId).not.toBe(first.shareId);
  });

  test.each<[string, object, string]>([
    ['no text', {}, 'text'], ['empty text', { text: '' }, 'text'], ['text that is no string', { text: 5 }, 'text'], ['half a character', { text: 'a\ud800' }, 'text'], ['an unknown argument', { text: 'a', nope: 1 }, 'nope'],
    ['a path as a name', { text: 'a', filename: '../a' }, 'filename'], ['ttl 29', { text: 'a', ttl: 29 }, 'ttl'], ['maxUses 0', { text: 'a', maxUses: 0 }, 'maxUses'], ['a ttl that is no exact number', { text: 'a', ttl: 1e21 }, 'ttl'],
    ['an empty operationId', { text: 'a', operationId: '' }, 'operationId'], ['a media type that is none', { text: 'a', mimeType: 'text' }, 'mimeType'], ['constructor', { text: 'a', constructor: 1 }, 'constructor'],
  ])('%s is refused, and the problem names the argument', async (_title, args, field) => {
    const { problem, content, value } = await tool('upload_text', args);
    expect(problem).toMatchObject({ code: 'invalid_request', status: 400, retryable: false, instance: '/mcp', errors: [{ path: field }] });
    expect([content.length, value]).toEqual([1, undefined]);
    expect((await tool('upload_json', { filename: 'a' })).problem.errors).toMatchObject([{ path: 'value' }]);
  });
});

describe('download_link', () => {
  test('of an open share spends nothing; the download does', async () => {
    const { id, shareId } = await mustTool('upload_text', { text: 'once', maxUses: 1 });
    const links = await Promise.all([1, 2, 3].map(() => mustTool('download_link', { shareId })));
    expect(links[0]).toEqual({ url: `${baseUrl}/api/dl/${id}?share_id=${shareId}`, method: 'GET', headers: {}, expiresAt: (await mustTool('resolve_share', { shareId })).expiresAt });
    expect((await call(links[2]!.url)).text).toBe('once');
    expect((await tool('download_link', { shareId })).problem.code).toBe('share_use_limit_exceeded');
  });

  test('says where a passcode is needed', async () => {
    const { shareId } = await mustTool('upload_text', { text: 'locked', passcode: 'open sesame' });
    const { url, passcodeRequired } = await mustTool('download_link', { shareId });
    expect(passcodeRequired).toBe(true);
    expect((await call(url, { headers: { 'x-share-passcode': 'open sesame' } })).text).toBe('locked');
  });

  test('refuses what is no grant for this share', async () => {
    const [one, two] = [await mustTool('upload_text', { text: '1', ...forReceiver() }, sender.key), await mustTool('upload_text', { text: '2', ...forReceiver() }, sender.key)];
    const { accessToken } = await mustTool('request_grant', { shareId: two.shareId }, receiver.key);
    for (const accessGrant of [accessToken, 'agrt_', 'agrt_e30.x', 'agrt_bnVsbA.x', 'dlt_x.y', '']) {
      expect((await tool('download_link', { shareId: one.shareId, accessGrant })).problem, accessGrant).toMatchObject({ code: 'invalid_grant', status: 403 });
    }
  });
});
