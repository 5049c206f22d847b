/** POST /mcp on the wire: messages, statuses and who may come (interface chapter: Hosted MCP). */
import { describe, expect, test } from 'vitest';
import { byMethod } from '../support/any-method.ts';
import { sharedExchange } from '../support/exchange.ts';
import { mcpOf } from '../support/mcp.ts';
import { sendRaw } from '../support/raw-http.ts';
import { expectRefusal } from '../support/refusals.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';

const exchange = sharedExchange();
const { baseUrl, call, must, owner } = exchange;
const { post, request, tool } = mcpOf(exchange);
const { host, port } = new URL(baseUrl);
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const rpcError = (code: number) => ({ jsonrpc: '2.0', error: { code, message: expect.stringMatching(/./) } });

describe('POST /mcp', () => {
  test.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])('initialize agrees on revision %s, and says what the server is and how it is used', async (protocolVersion) => {
    const { status, headers, json } = await request('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('mcp-session-id')).toBeNull();
    expectSafeHeaders(headers);
    expect(json).toEqual({
      jsonrpc: '2.0', id: 1,
      result: { protocolVersion, capabilities: { tools: { listChanged: false } }, serverInfo: { name: 'asset-exchange', title: 'Asset exchange', version: '4.0.0', websiteUrl: baseUrl }, instructions: expect.stringContaining('A grant works once') },
    });
  });

  test('an unknown revision is answered with one that the server speaks', async () => {
    const { json } = await request('initialize', { protocolVersion: '1999-01-01', capabilities: {}, clientInfo: { name: 'test', version: '1' } });
    expect(json.result.protocolVersion).toBe('2025-11-25');
  });

  test.each(['notifications/initialized', 'notifications/cancelled', 'notifications/unknown'])('the notification %s is answered 202 without a body', async (method) => {
    const { status, text } = await post(JSON.stringify({ jsonrpc: '2.0', method }));
    expect([status, text]).toEqual([202, '']);
  });

  test.each([['7'], ['"a"'], ['0'], ['-1'], ['""'], ['null'], ['1.5'], ['9007199254740992']])('the id %s comes back as it was', async (id) => {
    const { status, json, text } = await post(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
    expect(status).toBe(200);
    expect(json).toEqual({ jsonrpc: '2.0', id: JSON.parse(id), result: {} });
    expect(text).toContain(`"id":${id}`);
  });

  test.each([undefined, '*/*', 'application/json', 'text/event-stream', 'text/html', 'application/json, text/event-stream'])('with Accept %s the answer is JSON', async (accept) => {
    const lines = ['POST /mcp HTTP/1.1', `Host: ${host}`, 'Content-Type: application/json', ...(accept ? [`Accept: ${accept}`] : []), `Content-Length: ${ping.length}`, '', ping];
    const [answer] = await sendRaw(baseUrl, lines.join('\r\n'));
    expect([answer!.status, answer!.headers['content-type'], JSON.parse(answer!.body)]).toEqual([200, 'application/json; charset=utf-8', { jsonrpc: '2.0', id: 1, result: {} }]);
  });

  test('an unknown method answers -32601, wrong parameters and unknown tools -32602', async () => {
    for (const method of ['nope', 'resources/list', 'prompts/list', 'logging/setLevel', 'completion/complete', 'server/discover', 'subscriptions/listen', '__proto__', 'constructor', '']) {
      expect((await request(method)).json, method).toMatchObject({ id: 1, ...rpcError(-32601) });
    }
    for (const [method, params] of [['initialize', {}], ['initialize', { protocolVersion: 5 }], ['tools/call', {}], ['tools/call', { name: 5 }], ['tools/call', { name: 'nope' }], ['tools/call', { name: 'upload_text', arguments: [] }], ['tools/list', { cursor: 5 }]] as const) {
      expect((await request(method, params)).json, method).toMatchObject({ id: 1, ...rpcError(-32602) });
    }
  });

  test('an unknown MCP-Protocol-Version answers 400', async () => {
    const { status, json } = await request('ping', undefined, { 'mcp-protocol-version': '1999-01-01' });
    expect([status, json.error.message]).toEqual([400, expect.stringContaining('Unsupported protocol version')]);
  });
});

describe('other methods', () => {
  test('GET /mcp answers 405, since there is no event stream, and so does every other method', async () => {
    for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'OPTIONS']) {
      const answer = await call('/mcp', { method, headers: { accept: 'text/event-stream' } });
      expectRefusal(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe('POST');
    }
    expect((await byMethod(new URL('/mcp', baseUrl), 'HEAD')).status).toBe(405);
  });
});

describe('where a request may come from', () => {
  const from = async (lines: readonly string[]) => {
    const [answer] = await sendRaw(baseUrl, ['POST /mcp HTTP/1.1', ...lines, 'Content-Type: application/json', `Content-Length: ${ping.length}`, '', ping].join('\r\n'));
    return [answer!.status, JSON.parse(answer!.body).code];
  };
  const good = [200, undefined];
  const forbidden = [403, 'forbidden_origin'];

  test.each([host, host.toUpperCase(), 'localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])('Host %s is the exchange itself', async (name) => {
    expect(await from([`Host: ${name}`])).toEqual(good);
  });

  test.each([
    'evil.example', `evil.example:${port}`, `localhost.evil.example:${port}`, `localhost.:${port}`, `xlocalhost:${port}`, `evil.example@${host}`, `${host}@evil.example`, `${host}/evil.example`, `${host},evil.example`,
    '127.0.0.1.nip.io', '127.1', '2130706433', '0', '0.0.0.0', '[::ffff:127.0.0.1]', '::1', 'ｌocalhost', `localhost:${port}:80`, 'localhost:port', '',
  ])('Host "%s" answers forbidden_origin', async (name) => {
    expect(await from([`Host: ${Buffer.from(name).toString('latin1')}`])).toEqual(forbidden);
  });

  test('without Origin, or with that of the page at the same address, a request may come', async () => {
    expect(await from([`Host: ${host}`, `Origin: ${baseUrl}`])).toEqual(good);
    expect(await from([`Host: 127.0.0.1:${port}`, `Origin: http://127.0.0.1:${port}`])).toEqual(good);
    expect(await from([`Host: 127.0.0.1:${port}`, `Origin: ${baseUrl}`])).toEqual(good);
  });

  test.each([
    'null', 'http://evil.example', `http://${host}.evil.example`, `http://evil.example/${host}`, `http://${host}@evil.example`, `http://x.${host}`, `https://${host}`, 'http://localhost:1', `HTTP://${host}`,
    `http://${host}/`, `${host}`, 'file://', 'chrome-extension://abcdef', '*', `http://${host}, http://evil.example`, `http://${host} http://evil.example`,
  ])('Origin "%s" answers forbidden_origin', async (origin) => {
    expect(await from([`Host: ${host}`, `Origin: ${origin}`])).toEqual(forbidden);
  });

  test('two Origins answer forbidden_origin', async () => {
    expect(await from([`Host: ${host}`, `Origin: ${baseUrl}`, 'Origin: http://evil.example'])).toEqual(forbidden);
  });

  test('the refusal is a problem, and comes before the body is looked at', async () => {
    const answer = await post('{', { origin: 'https://evil.example' });
    expectRefusal(answer, 403, 'forbidden_origin');
    expectSafeHeaders(answer.headers);
  });

  test('a session cookie counts for the exchange\'s own pages and for nobody else', async () => {
    const cookie = (await must('/api/owner/session', { json: owner })).headers.getSetCookie()[0]!.split(';')[0]!;
    const { value } = await tool('upload_text', { text: 'by the owner' }, undefined, { cookie, origin: baseUrl });
    expect((await must(`/api/share/${value.shareId}`)).json.createdByUserId).toMatch(/./);
    const { problem } = await tool('upload_text', { text: 'by whom?' }, undefined, { cookie });
    expect(problem).toMatchObject({ status: 403, code: 'forbidden_origin' });
  });
});
