/** POST /mcp with what no careful client sends: an error of the right kind, and nothing stored (interface chapters: Hosted MCP, Errors). */
import { describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { mcpOf } from '../support/mcp.ts';
import { sendRaw } from '../support/raw-http.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { baseUrl, call } = exchange;
const { post, request, tool, mustTool } = mcpOf(exchange);
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const calling = (args: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload_json","arguments":${args}}}`;

describe('bodies', () => {
  test.each<[string, string | Uint8Array]>([
    ['nothing', ''], ['half a message', '{"jsonrpc":'], ['two messages', ping + ping], ['a comma too many', '{"jsonrpc":"2.0",}'], ['NaN', '{"id":NaN}'], ['a byte order mark', `\ufeff${ping}`],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])], ['UTF-16', Buffer.from(ping, 'utf16le')], ['U+0000 at the end', `${ping}\u0000`],
  ])('%s answers -32700', async (_title, body) => {
    const { status, json } = await post(body);
    expect([status, json]).toEqual([400, { jsonrpc: '2.0', id: null, error: { code: -32700, message: expect.stringMatching(/^Parse error/) } }]);
  });

  test.each<[string, string]>([
    ['a batch', `[${ping}]`], ['a batch of two', `[${ping},${ping}]`], ['an empty batch', '[]'], ['a batch with initialize', '[{"jsonrpc":"2.0","id":1,"method":"initialize"}]'], ['100,000 lists in each other', deep(100_000)],
    ['no jsonrpc', '{"id":1,"method":"ping"}'], ['jsonrpc 1.0', '{"jsonrpc":"1.0","id":1,"method":"ping"}'], ['jsonrpc as a number', '{"jsonrpc":2.0,"id":1,"method":"ping"}'], ['no method', '{"jsonrpc":"2.0","id":1}'], ['a method that is no string', '{"jsonrpc":"2.0","id":1,"method":5}'],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}'], ['an id that is true', '{"jsonrpc":"2.0","id":true,"method":"ping"}'], ['an id past all numbers', '{"jsonrpc":"2.0","id":1e400,"method":"ping"}'], ['params as a list', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}'],
    ['params as a string', '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}'], ['a string', '"ping"'], ['null', 'null'], ['a number', '5'], ['an empty object', '{}'],
    ['__proto__', '{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{}}'], ['__proto__ in escapes', '{"jsonrpc":"2.0","id":1,"method":"ping","\\u005f_proto__":{}}'], ['__proto__ in a value', calling('{"value":{"__proto__":1}}')],
  ])('%s answers -32600', async (_title, body) => {
    const { status, json } = await post(body);
    expect([status, json]).toMatchObject([400, { jsonrpc: '2.0', error: { code: -32600, message: expect.stringMatching(/./) } }]);
  });

  test.each(['1', 'null', '1.5', '"a"'])('a subscription with the id %s opens no stream', async (id) => {
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' }, 'io.modelcontextprotocol/clientCapabilities': {} };
    const body = `{"jsonrpc":"2.0","id":${id},"method":"subscriptions/listen","params":${JSON.stringify({ _meta: meta, notifications: { toolsListChanged: true } })}}`;
    const { status, json } = await post(body, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' });
    expect([status, json]).toMatchObject([404, { id: JSON.parse(id), error: { code: -32601 } }]);
  });

  test.each(['text/plain', 'application/jsonx', 'application/json garbage', 'application/json-rpc', 'application/x-www-form-urlencoded'])('Content-Type %s answers unsupported_media_type', async (type) => {
    expectRefusal(await post(ping, { 'content-type': type }), 415, 'unsupported_media_type');
  });

  test('10 MB of text answer payload_too_large, announced or not', async () => {
    const body = calling(JSON.stringify({ value: 'x'.repeat(10_000_000) }));
    const announced = await post(body);
    expectRefusal(announced, 413, 'payload_too_large');
    // A connection that ended at once would lose the answer now and then.
    expect(announced.headers.get('connection')).not.toBe('close');
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < body.length; at += 65_536) controller.enqueue(Buffer.from(body.slice(at, at + 65_536)));
        controller.close();
      },
    });
    expectRefusal(await call('/mcp', { method: 'POST', body: stream, headers: { 'content-type': 'application/json' } }), 413, 'payload_too_large');
  });

  test('a client that asks before it sends is told to go on, unless it is refused', async () => {
    const lines = (origin: string) => ['POST /mcp HTTP/1.1', `Host: ${new URL(baseUrl).host}`, `Origin: ${origin}`, 'Content-Type: application/json', 'Expect: 100-continue', `Content-Length: ${ping.length}`, '', ''].join('\r\n');
    expect((await sendRaw(baseUrl, lines(baseUrl) + ping, 2)).map(({ status }) => status)).toEqual([100, 200]);
    expect((await sendRaw(baseUrl, lines('http://evil.example')))[0]!.status).toBe(403);
  });
});

describe('tools', () => {
  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'prototype', 'valueOf', 'then', '', 'UPLOAD_TEXT', 'upload_text ', 'x'.repeat(100_000)])('the tool "%.20s" answers -32602', async (name) => {
    const { status, json, text } = await request('tools/call', { name, arguments: {} });
    expect([status, json]).toMatchObject([200, { id: 1, error: { code: -32602, message: `Unknown tool: ${name.slice(0, 64)}` } }]);
    expect(text.length).toBeLessThan(300);
  });

  test('a call that is sent as a notification is not carried out', async () => {
    const session = await exchange.signIn();
    const label = `notified-${Date.now()}`;
    const { status, text } = await post(JSON.stringify({ jsonrpc: '2.0', method: 'tools/call', params: { name: 'upload_text', arguments: { text: 'x', filename: label } } }), { authorization: `Bearer ${session}` });
    expect([status, text]).toEqual([202, '']);
    expect((await exchange.must('/api/shares', { bearer: session })).text).not.toContain(label);
  });

  test('names that objects have by birth are unknown arguments', async () => {
    for (const name of ['constructor', 'toString', 'hasOwnProperty', 'prototype']) {
      expect((await tool('resolve_share', { shareId: 'shr_a', [name]: {} })).problem.errors, name).toMatchObject([{ path: name, message: 'unknown field' }]);
    }
  });

  test('a value of 100,000 lists in each other is refused, and one of 1,000 is kept', async () => {
    const { json } = await post(calling(`{"value":${deep(100_000)}}`));
    expect(JSON.parse(json.result.content[0].text)).toMatchObject({ code: 'invalid_request', errors: [{ path: 'value' }] });
    const kept = (await post(calling(`{"value":${deep(1_000)}}`))).json.result.structuredContent;
    expect((await call(kept.downloadUrl)).text).toBe(deep(1_000));
  });

  test('the numbers of other arguments are no numbers when JavaScript would change them', async () => {
    for (const ttl of ['9007199254740993', '1e400', '60.00000000000000000001', '-0']) {
      expect(JSON.parse((await post(calling(`{"value":1,"ttl":${ttl}}`))).json.result.content[0].text).errors, ttl).toMatchObject([{ path: 'ttl' }]);
    }
    expect(JSON.parse((await post(calling('{"value":1,"policyMetadata":1e400}'))).json.result.content[0].text).errors).toMatchObject([{ path: 'policyMetadata' }]);
    expect((await post(calling('{"value":1,"ttl":6e1}'))).json.result.structuredContent.shareId).toMatch(/^shr_/);
  });

  test('no token that came in a wrong place is repeated', async () => {
    const secret = 'agk_0123456789abcdef.ABCDEFGHIJKLMNOPQRSTUVWXYZ012345';
    const answers = await Promise.all([
      request('tools/call', { name: secret, arguments: {} }), request(secret), request('tools/call', { name: 'resolve_share', arguments: { [secret]: 1 } }), request('tools/call', { name: 'resolve_share', arguments: { shareId: secret } }),
      request('ping', undefined, { 'mcp-protocol-version': secret }), request('ping', { _meta: { 'io.modelcontextprotocol/protocolVersion': secret } }), request('initialize', { protocolVersion: secret, capabilities: {}, clientInfo: { name: secret, version: secret } }),
    ]);
    for (const { text } of answers) expect(text).not.toContain('ABCDEFGH');
  });

  test('a hundred calls at once each get the answer to their own id', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, id) => post(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'upload_json', arguments: { value: id } } }))));
    expect(answers.map(({ json }) => json.id)).toEqual(answers.map((_, id) => id));
    const values = await Promise.all(answers.slice(0, 10).map(({ json }) => mustTool('fetch_share', { shareId: json.result.structuredContent.shareId })));
    expect(values.map(({ json }) => json)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});
