/** HTTP as a careful client speaks it: nothing is sent twice by itself, and an answer that did not come whole is none. */
import { Agent, request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';

/** No call may take longer than this, whatever is down. */
export const answeredWithinMs = 10_000;

export interface Reply {
  /** 0 when not even a status line came. */
  readonly status: number;
  /** Whether the whole answer came. Otherwise what the server did is unknown. */
  readonly whole: boolean;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  // Any: tests read answers field by field, and state what they expect of each.
  readonly json: any;
}

export interface Call {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly json?: unknown;
  readonly body?: Buffer;
  readonly bearer?: string | undefined;
  /** Breaks the connection. */
  readonly signal?: AbortSignal;
}

export interface Wire {
  readonly baseUrl: string;
  send(path: string, call?: Call): Promise<Reply>;
  /** Calls that were not answered in time. */
  readonly late: readonly string[];
  /** How many answers there were of each status; 0 counts broken connections. */
  readonly statuses: ReadonlyMap<number, number>;
  longestMs: number;
  close(): void;
}

/** `choose` names the address for each call, where there are several. */
export function openWire(baseUrl: string, choose: () => Promise<string> | string = () => baseUrl): Wire {
  const agent = new Agent({ keepAlive: true });
  const statuses = new Map<number, number>();
  const late: string[] = [];
  const wire: Wire = {
    baseUrl, late, statuses,
    longestMs: 0,
    async send(path, call = {}) {
      const address = await choose();
      const begun = performance.now();
      const reply = await exchange(agent, new URL(path, address), call, () => late.push(`${call.method ?? ''} ${path}`));
      wire.longestMs = Math.max(wire.longestMs, performance.now() - begun);
      const status = reply.whole ? reply.status : 0;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      return reply;
    },
    close: () => agent.destroy(),
  };
  return wire;
}

function exchange(agent: Agent, url: URL, call: Call, onLate: () => void): Promise<Reply> {
  const body = call.json === undefined ? call.body : Buffer.from(JSON.stringify(call.json));
  const headers = {
    ...(call.json !== undefined && { 'content-type': 'application/json' }),
    ...(body && { 'content-length': String(body.length) }),
    ...(call.bearer && { authorization: `Bearer ${call.bearer}` }),
    ...call.headers,
  };
  return new Promise((resolve) => {
    const sent = request(url, { agent, method: call.method ?? (body ? 'POST' : 'GET'), headers, ...(call.signal && { signal: call.signal }) });
    const timer = setTimeout(() => {
      onLate();
      sent.destroy();
    }, answeredWithinMs);
    const settle = (reply: Reply) => {
      clearTimeout(timer);
      resolve(reply);
    };
    sent.on('error', () => settle(broken(0)));
    sent.on('response', (response) => void readAnswer(response).then(settle));
    sent.end(body);
  });
}

const broken = (status: number): Reply => ({ status, whole: false, headers: {}, bytes: Buffer.alloc(0), json: undefined });

async function readAnswer(response: IncomingMessage): Promise<Reply> {
  const status = response.statusCode ?? 0;
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch {
    return broken(status);
  }
  if (!response.complete) return broken(status);
  const bytes = Buffer.concat(chunks);
  const isJson = /json/.test(response.headers['content-type'] ?? '');
  return { status, whole: true, headers: response.headers, bytes, json: isJson && bytes.length > 0 ? JSON.parse(bytes.toString('utf8')) : undefined };
}

/** Whether a reply says for certain what happened. A server that answers 5xx does not know or could not. */
export function isDefinite(reply: Reply): boolean {
  return reply.whole && reply.status < 500;
}
