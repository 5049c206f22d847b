/** fetch_share: small text and JSON in the answer itself, spending as a fetch does (interface chapter: Hosted MCP). */
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { mcpOf } from '../support/mcp.ts';

const exchange = sharedExchange();
const { call, upload, grant } = exchange;
const { tool, mustTool } = mcpOf(exchange);

let receiver: Agent;
let outsider: Agent;
beforeAll(async () => {
  const session = await exchange.signIn();
  [receiver, outsider] = await Promise.all([exchange.makeAgent(session), exchange.makeAgent(session)]) as [Agent, Agent];
});
const sendToReceiver = (content: string, fields: object = {}) => upload(content, { authMode: 'agent', allowedAgentIds: [receiver.agentId], ...fields });
const most = 256 * 1_024;

describe('fetch_share answers', () => {
  test('text as text, and the same as JSON text', async () => {
    const { shareId } = await upload('a line\nänd ✓', { filename: 'a.csv', mimeType: 'text/csv' });
    const { value, content } = await tool('fetch_share', { shareId });
    expect(value).toEqual({ shareId, filename: 'a.csv', mimeType: 'text/csv', size: 15, text: 'a line\nänd ✓' });
    expect(JSON.parse(content[0]!.text!)).toEqual(value);
    expect(content).toHaveLength(1);
  });

  test.each(['application/json', 'application/geo+json', 'application/json; charset=utf-8', 'APPLICATION/JSON'])('%s as a value', async (mimeType) => {
    const { shareId } = await upload('{"a":[1,null,"é"]}', { mimeType });
    expect(await mustTool('fetch_share', { shareId })).toMatchObject({ json: { a: [1, null, 'é'] }, mimeType });
  });

  test.each([['null', null], ['0', 0], ['""', '']])('the JSON value %s', async (content, json) => {
    const { shareId } = await upload(content, { mimeType: 'application/json' });
    expect(await mustTool('fetch_share', { shareId })).toMatchObject({ json });
  });

  test.each([['no JSON at all', '{"a":'], ['__proto__', '{"__proto__":{"a":1}}'], ['a byte order mark', '\ufeff{}'], ['500 lists in each other', '['.repeat(500) + ']'.repeat(500)], ['100,000 lists in each other', '['.repeat(100_000) + ']'.repeat(100_000)]])(
    'JSON with %s as text', async (_title, content) => {
      const { shareId } = await upload(content, { mimeType: 'application/json' });
      const { text, json } = await mustTool('fetch_share', { shareId });
      expect([text === content, json]).toEqual([true, undefined]);
    });

  test('text in the character set that its type names', async () => {
    const { shareId } = await upload(Buffer.from('na\xefve', 'latin1'), { mimeType: 'text/plain; charset=iso-8859-1' });
    expect((await mustTool('fetch_share', { shareId })).text).toBe('naïve');
  });

  test.each([1, 32_768, 32_769, most])('%d bytes, to the last', async (length) => {
    const content = 'x'.repeat(length - 1) + '!';
    const { shareId } = await upload(content, { maxUses: 1 });
    const { text, size } = await mustTool('fetch_share', { shareId });
    expect([text === content, size]).toEqual([true, length]);
  });
});

describe('fetch_share spends as a fetch does', () => {
  test('one use each time, until none is left', async () => {
    const { shareId } = await upload('a', { maxUses: 2 });
    expect((await mustTool('fetch_share', { shareId })).remainingUses).toBe(1);
    expect((await mustTool('fetch_share', { shareId })).remainingUses).toBe(0);
    expect((await tool('fetch_share', { shareId })).problem).toMatchObject({ code: 'share_use_limit_exceeded', status: 410 });
  });

  test('of 40 callers at once on maxUses 7 exactly seven are served', async () => {
    const { shareId } = await upload('a', { maxUses: 7 });
    const answers = await Promise.all(Array.from({ length: 40 }, () => tool('fetch_share', { shareId })));
    expect(answers.map(({ problem }) => problem?.code ?? 'served').sort()).toEqual([...Array(7).fill('served'), ...Array(33).fill('share_use_limit_exceeded')]);
  });

  test('a grant that it requests by itself, so that a retry needs nothing', async () => {
    const { shareId } = await sendToReceiver('for you');
    for (const _again of [1, 2]) expect((await mustTool('fetch_share', { shareId }, receiver.key)).text).toBe('for you');
    expect((await tool('fetch_share', { shareId }, outsider.key)).problem.code).toBe('agent_not_allowed_for_share');
    expect((await tool('fetch_share', { shareId })).problem.code).toBe('agent_auth_required');
  });

  test('the grant that it is given, once, and without any other credential', async () => {
    const { shareId } = await sendToReceiver('for you');
    const accessGrant = await grant(shareId, receiver.key);
    expect((await mustTool('fetch_share', { shareId, accessGrant })).text).toBe('for you');
    expect((await tool('fetch_share', { shareId, accessGrant })).problem).toMatchObject({ code: 'grant_already_used', status: 409 });
    const elsewhere = await grant((await sendToReceiver('other')).shareId, receiver.key);
    for (const wrong of [elsewhere, 'agrt_x', 'nonsense']) expect((await tool('fetch_share', { shareId, accessGrant: wrong }, receiver.key)).problem.code).toBe('invalid_grant');
  });

  test('nothing without the passcode of the share', async () => {
    const { shareId } = await upload('locked', { passcode: 'open sesame', maxUses: 1 });
    expect((await tool('fetch_share', { shareId })).problem.code).toBe('passcode_required');
    expect((await tool('fetch_share', { shareId, passcode: 'not this one' })).problem.code).toBe('invalid_passcode');
    expect((await mustTool('fetch_share', { shareId, passcode: 'open sesame' })).text).toBe('locked');
  });

  test('nothing where the share is gone', async () => {
    const { id, shareId, deleteToken } = await upload('gone');
    await call(`/api/dl/${id}`, { method: 'DELETE', headers: { 'x-delete-token': deleteToken } });
    expect((await tool('fetch_share', { shareId })).problem.code).toMatch(/^(share_not_found_or_expired|transfer_not_found)$/);
    expect((await tool('fetch_share', { shareId: 'shr_never' })).problem.code).toBe('share_not_found_or_expired');
  });
});

describe('a refusal for size or type spends nothing and says how to download instead', () => {
  test.each<[string, string | Buffer, string, string]>([
    ['one byte more than 256 KiB', 'x'.repeat(most + 1), 'text/plain', 'payload_too_large'],
    ['a type that is no text', 'text all the same', 'application/octet-stream', 'unsupported_media_type'],
    ['a type that only looks like JSON', '{}', 'application/jsonx', 'unsupported_media_type'],
    ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x00]), 'text/plain', 'unsupported_media_type'],
    ['bytes that are neither JSON nor text', Buffer.from([0xff]), 'application/json', 'unsupported_media_type'],
    ['a character set that nobody knows', 'a', 'text/plain; charset=x-unheard-of', 'unsupported_media_type'],
  ])('%s', async (_title, content, mimeType, code) => {
    const { shareId } = await upload(content, { mimeType, maxUses: 1 });
    const { problem } = await tool('fetch_share', { shareId });
    expect(problem).toMatchObject({ code, detail: expect.stringMatching(/Nothing was spent\. Use download_link/) });
    const { url } = await mustTool('download_link', { shareId });
    expect(Buffer.from(await (await fetch(url)).arrayBuffer())).toEqual(Buffer.from(content));
  });

  test('of an agent share the grant stays unused, too', async () => {
    const { shareId } = await sendToReceiver('x'.repeat(most + 1), { maxUses: 1 });
    const accessGrant = await grant(shareId, receiver.key);
    expect((await tool('fetch_share', { shareId, accessGrant })).problem.code).toBe('payload_too_large');
    const { url, headers } = await mustTool('download_link', { shareId, accessGrant });
    expect((await call(url, { headers })).status).toBe(200);
  });
});
