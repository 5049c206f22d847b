/** Hosted MCP as a client without an SDK speaks it: one JSON-RPC message a request. */
import type { Answer, Exchange } from './exchange.ts';

/** What a tool answered. `value` on success, `problem` on a refusal. */
export interface ToolAnswer {
  readonly isError: boolean;
  readonly value: any;
  readonly problem: any;
  readonly content: { readonly type: string; readonly text?: string; readonly uri?: string; readonly name?: string }[];
  readonly answer: Answer;
}

export function mcpOf({ call }: Pick<Exchange, 'call'>) {
  /** Posts a body as it is. */
  const post = (body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Answer> => call('/mcp', { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });

  const request = (method: string, params?: object, headers?: Record<string, string>): Promise<Answer> => post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, ...(params && { params }) }), headers);

  async function tool(name: string, args: object, bearer?: string, headers: Record<string, string> = {}): Promise<ToolAnswer> {
    const answer = await request('tools/call', { name, arguments: args }, { ...(bearer && { authorization: `Bearer ${bearer}` }), ...headers });
    if (!answer.json?.result) throw new Error(`${name}: ${answer.status} ${answer.text}`);
    const { isError = false, structuredContent, content } = answer.json.result;
    return { isError, value: structuredContent, problem: isError ? JSON.parse(content[0].text) : undefined, content, answer };
  }

  /** Like `tool`, for steps that must succeed. Answers the value. */
  async function mustTool(name: string, args: object, bearer?: string): Promise<any> {
    const { isError, value, problem } = await tool(name, args, bearer);
    if (isError) throw new Error(`${name}: ${JSON.stringify(problem)}`);
    return value;
  }

  return { post, request, tool, mustTool };
}
