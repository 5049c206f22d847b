/** The MCP server of one request: the SDK's, with tools that were described once at the start. */
import { McpServer, ProtocolError, ProtocolErrorCode, type CallToolResult, type Tool as ListedTool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { parseInput } from '../../../../shared/rpc.ts';
import { hideTokens } from '../../domain/credential.ts';
import { isKeptNumber } from '../../domain/json-body.ts';
import { toFailure } from '../../problem.ts';
import { downloadLink } from './download-link.ts';
import { fetchShare } from './fetch-share.ts';
import { instructionsFor } from './instructions.ts';
import { requestGrant } from './request-grant.ts';
import { resolveShare } from './resolve-share.ts';
import { tell, tellFailure, type Tool, type ToolCall } from './tool.ts';
import { uploadJson, uploadText } from './upload.ts';

const tools = [uploadText, uploadJson, resolveShare, requestGrant, downloadLink, fetchShare];

/** Makes the function that makes a server for a request. Nothing is kept between requests, so any replica answers any of them. */
export function serverMaker({ baseUrl, version }: { readonly baseUrl: string; readonly version: string }): (call: ToolCall) => McpServer {
  const info = { name: 'asset-exchange', title: 'Asset exchange', version, websiteUrl: baseUrl };
  const options = { capabilities: { tools: { listChanged: false } }, instructions: instructionsFor(baseUrl), cacheHints: { 'tools/list': { ttlMs: 3_600_000, cacheScope: 'public' as const } } };
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const listed = tools.map(describe);
  return (call) => {
    const mcp = new McpServer(info, options);
    mcp.server.setRequestHandler('tools/list', () => ({ tools: listed }));
    mcp.server.setRequestHandler('tools/call', ({ params }) => callTool(byName.get(params.name) ?? unknownTool(params.name), params.arguments ?? {}, call));
    return mcp;
  };
}

function describe({ name, title, description, annotations, input, output }: Tool): ListedTool {
  const schemaOf = (schema: z.ZodType, io: 'input' | 'output') => z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as ListedTool['inputSchema'];
  return { name, title, description, annotations: { title, ...annotations }, inputSchema: schemaOf(input, 'input'), outputSchema: schemaOf(output, 'output') };
}

/** The name comes from outside: enough of it to recognise is repeated. */
function unknownTool(name: string): never {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${hideTokens(name).slice(0, 64)}`);
}

/** Only a value that is stored may be a number that JavaScript would change; as an argument it is none. */
function asNumbers({ value, ...input }: Record<string, unknown>): Record<string, unknown> {
  const numbers = Object.entries(input).map(([name, given]) => [name, isKeptNumber(given) ? Number.NaN : given] as const);
  return { ...(value !== undefined && { value }), ...Object.fromEntries(numbers) };
}

/** Everything that a tool refuses is an outcome that the model reads; only what is no call at all is an error of the protocol. */
async function callTool(tool: Tool, input: Record<string, unknown>, call: ToolCall): Promise<CallToolResult> {
  const { log } = call.request;
  try {
    return tell(await tool.run(parseInput(tool, asNumbers(input)), call), call.baseUrl);
  } catch (error) {
    const failure = toFailure(error);
    if (failure.code === 'internal') log.error({ err: failure.cause, tool: tool.name }, 'a tool failed');
    else log.info({ code: failure.code, tool: tool.name }, 'a tool refused');
    return tellFailure(failure, call);
  }
}
