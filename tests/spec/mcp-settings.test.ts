/** Hosted MCP in a deployment with settings of its own: names, origins, who may create, how often (interface chapter: Hosted MCP). */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mcpOf } from '../support/mcp.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { sendRaw } from '../support/raw-http.ts';
import { expectRefusal } from '../support/refusals.ts';

let own: OwnStack;
let mcp: ReturnType<typeof mcpOf>;
let session: string;
beforeAll(async () => {
  own = await startOwnStack({
    gateway: { MCP_ALLOWED_HOSTS: 'gateway.internal, [fd00::1]', MCP_ALLOWED_ORIGINS: 'https://app.example,app-extension://abc', RATE_LIMITS: 'on', RATE_LIMIT_CREATE: '40/600', RATE_LIMIT_KNOWN_TIMES: '20' },
    policy: { ANONYMOUS_CREATE: 'deny', PLAN_TTL_SECONDS: '1' },
  });
  mcp = mcpOf(own.exchange);
  session = await own.exchange.signIn();
});
afterAll(() => own.remove());

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
async function statusFrom(host: string, origin?: string): Promise<number> {
  const lines = ['POST /mcp HTTP/1.1', `Host: ${host}`, ...(origin ? [`Origin: ${origin}`] : []), `Authorization: Bearer ${session}`, 'Content-Type: application/json', `Content-Length: ${ping.length}`, '', ping];
  return (await sendRaw(own.exchange.baseUrl, lines.join('\r\n')))[0]!.status;
}

describe('a deployment may', () => {
  test('allow more names and origins, and no look-alike of them', async () => {
    expect(await Promise.all([statusFrom('gateway.internal'), statusFrom('gateway.internal:8443'), statusFrom('[fd00::1]:80'), statusFrom('localhost')])).toEqual([200, 200, 200, 200]);
    expect(await Promise.all([statusFrom('gateway.internal.evil.example'), statusFrom('xgateway.internal'), statusFrom('app.example')])).toEqual([403, 403, 403]);
    expect(await Promise.all(['https://app.example', 'app-extension://abc', 'http://gateway.internal'].map((origin) => statusFrom('gateway.internal', origin)))).toEqual([200, 200, 200]);
    expect(await Promise.all(['http://app.example', 'https://app.example.evil.example', 'https://app.example:444', 'app-extension://abcd', 'null'].map((origin) => statusFrom('gateway.internal', origin)))).toEqual([403, 403, 403, 403, 403]);
  });

  test('deny anonymous callers to create by MCP, too, while they still fetch', async () => {
    expect((await mcp.tool('upload_text', { text: 'a' })).problem).toMatchObject({ code: 'agent_auth_required', status: 401 });
    const { shareId } = await mcp.mustTool('upload_text', { text: 'a' }, session);
    expect((await mcp.mustTool('fetch_share', { shareId })).text).toBe('a');
  });

  test.each([10, 40_000])('let plans expire soon: an operation of %d characters that was carried out is answered again all the same', async (length) => {
    const args = { text: 'a'.repeat(length), operationId: `late-${length}` };
    const first = await mcp.mustTool('upload_text', args, session);
    await setTimeout(1_100);
    expect(await mcp.mustTool('upload_text', args, session)).toEqual(first);
  });

  test('limit calls as it limits creating: past it comes rate_limited, before the message is read', async () => {
    const answers = await Promise.all(Array.from({ length: 45 }, () => mcp.post('{')));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expectRefusal(refused[0]!, 429, 'rate_limited');
    expect(refused[0]!.headers.get('ratelimit-policy')).toBe('"create";q=40;w=600');
  });
});
