/** The official clients and the conformance scenarios of the protocol, against POST /mcp (interface chapter: Hosted MCP). */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';

const exchange = sharedExchange();
const { baseUrl, call } = exchange;
const address = new URL('/mcp', baseUrl);
const identity = { name: 'test', version: '1' };

let agent: Agent;
beforeAll(async () => { agent = await exchange.makeAgent(await exchange.signIn()); });
const options = () => ({ requestInit: { headers: { authorization: `Bearer ${agent.key}` } } });

/** What both generations of clients can do. */
interface AnyClient {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<{ isError?: unknown; structuredContent?: unknown; content?: unknown }>;
  getInstructions(): string | undefined;
  close(): Promise<void>;
}

async function ofTheFirstLine(): Promise<[AnyClient, string | undefined]> {
  const [client, transport] = [new Client(identity), new StreamableHTTPClientTransport(address, options())];
  // The package types its own transport a little narrower than its client.
  await client.connect(transport as Parameters<Client['connect']>[0]);
  return [client as AnyClient, transport.protocolVersion];
}

async function ofTheSecondLine(mode: 'legacy' | 'auto' | { pin: string }): Promise<[AnyClient, string | undefined]> {
  const client = new ModernClient(identity, { versionNegotiation: { mode } });
  await client.connect(new ModernTransport(address, options()));
  return [client as AnyClient, client.getNegotiatedProtocolVersion()];
}

describe.each([
  ['of the 1.x line', '2025-11-25', ofTheFirstLine],
  ['of the 2.x line as it comes', '2025-11-25', () => ofTheSecondLine('legacy')],
  ['of the 2.x line that asks which revision', '2026-07-28', () => ofTheSecondLine('auto')],
  ['of the 2.x line pinned to 2026-07-28', '2026-07-28', () => ofTheSecondLine({ pin: '2026-07-28' })],
] as const)('the client %s', (_name, revision, connect) => {
  test(`speaks ${revision}, and takes what all six tools answer for what they declare`, async () => {
    const [client, negotiated] = await connect();
    const tool = async (name: string, args: Record<string, unknown>): Promise<any> => {
      const { isError, structuredContent, content } = await client.callTool({ name, arguments: args });
      if (isError) throw new Error(JSON.stringify(content));
      return structuredContent;
    };
    expect(negotiated).toBe(revision);
    expect(client.getInstructions()).toContain('To send:');
    // The client compiles the declared outputs here, and checks every answer against them from now on.
    expect((await client.listTools()).tools).toHaveLength(6);
    const { shareId } = await tool('upload_text', { text: 'from a client', authMode: 'agent', allowedAgentIds: [agent.agentId], maxUses: 2 });
    expect(await tool('resolve_share', { shareId })).toMatchObject({ filename: 'text.txt', createdByAgentId: agent.agentId });
    const { accessToken } = await tool('request_grant', { shareId });
    const { url, ...link } = await tool('download_link', { shareId, accessGrant: accessToken });
    expect((await call(url, link)).text).toBe('from a client');
    expect(await tool('fetch_share', { shareId })).toMatchObject({ text: 'from a client', remainingUses: 0 });
    const json = await tool('upload_json', { value: { a: [1] } });
    expect(await tool('fetch_share', { shareId: json.shareId })).toMatchObject({ json: { a: [1] } });
    await client.close();
  });

  test('shows a refusal as an outcome with its code, and an unknown tool as an error', async () => {
    const [client] = await connect();
    await client.listTools();
    const { isError, content } = await client.callTool({ name: 'fetch_share', arguments: { shareId: 'shr_never' } }) as { isError: boolean; content: { text: string }[] };
    expect([isError, JSON.parse(content[0]!.text).code]).toEqual([true, 'share_not_found_or_expired']);
    await expect(client.callTool({ name: 'nope', arguments: {} })).rejects.toMatchObject({ code: -32602 });
    await client.close();
  });
});

/** The scenarios about what this server has. The others want tools, resources, prompts or streams that only their own example server has; see docs/decisions/020-mcp.md. */
const scenarios = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];

describe('the conformance suite', () => {
  const program = join(dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')), 'dist/index.js');

  test.each(scenarios)('passes the scenario %s', async (scenario) => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'server', '--url', address.href, '--scenario', scenario]);
    expect(stdout).toMatch(/Passed: ([1-9]\d*)\/\1, 0 failed/);
  });
});
