/** The exchange as its users see it: plain HTTP calls, and the few steps that most tests begin with. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';

/** An answer, read to its end. `json` is undefined when the body is not JSON. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
  // Any: tests read answers field by field, as their caller would, and state what they expect of each.
  readonly json: any;
}

export interface Request {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly body?: string | Uint8Array | ReadableStream | FormData;
  readonly bearer?: string | undefined;
  readonly signal?: AbortSignal;
}

export interface Uploaded {
  readonly id: string;
  readonly shareId: string;
  readonly shareUrl: string;
  readonly downloadUrl: string;
  readonly expiresAt: string;
  readonly deleteToken: string;
}

export interface Agent {
  readonly agentId: string;
  readonly keyId: string;
  readonly key: string;
}

export type Exchange = ReturnType<typeof exchangeAt>;

/** Promise: an address of the object store is told to whoever sends parts there, and to nobody else. Every answer that a test reads is looked at. */
function checkUnsigned(path: string, headers: Headers, text: string): void {
  if (/^\/api\/(upload\/multipart\/(init|direct-urls)|folder\/\w+\/files)$/.test(path)) return;
  if (/x-amz-(signature|credential)/i.test(`${JSON.stringify([...headers])} ${text}`)) throw new Error(`${path} answers a signed address`);
}

/** The exchange at an address. Paths may be absolute addresses, as answers hold them. */
export function exchangeAt(baseUrl: string, owner: { email: string; password: string }) {
  async function call(path: string, request: Request = {}): Promise<Answer> {
    const response = await fetch(new URL(path, baseUrl), {
      method: request.method ?? (request.json !== undefined || request.body !== undefined ? 'POST' : 'GET'),
      redirect: 'manual',
      headers: {
        ...(request.json !== undefined && { 'content-type': 'application/json' }),
        ...(request.bearer && { authorization: `Bearer ${request.bearer}` }),
        ...request.headers,
      },
      ...(request.json !== undefined ? { body: JSON.stringify(request.json) } : request.body !== undefined ? { body: request.body } : {}),
      ...(request.signal && { signal: request.signal }),
      // Streams as bodies need this; it changes nothing for others.
      duplex: 'half',
    } as RequestInit);
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = bytes.toString('utf8');
    checkUnsigned(new URL(path, baseUrl).pathname, response.headers, text);
    const isJson = /[/+]json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, headers: response.headers, bytes, text, json: isJson && text !== '' ? JSON.parse(text) as unknown : undefined };
  }

  /** Like `call`, for steps that must succeed before the test proper begins. */
  async function must(path: string, request?: Request): Promise<Answer> {
    const answer = await call(path, request);
    if (answer.status >= 400) throw new Error(`${request?.method ?? ''} ${path}: ${answer.status} ${answer.text}`);
    return answer;
  }

  /** A session token of the first owner. */
  async function signIn(): Promise<string> {
    return (await must('/api/owner/session', { json: owner })).json.token as string;
  }

  /** Another owner, made by the first, signed in. */
  async function makeOwner(session: string, facts: { admin?: boolean } = {}): Promise<{ id: string; email: string; password: string; session: string }> {
    const account = { email: `${randomUUID()}@example.com`, password: randomUUID() };
    const { owner: made } = (await must('/api/owner/accounts', { bearer: session, json: { ...account, ...facts } })).json as { owner: { id: string } };
    const { token } = (await must('/api/owner/session', { json: account })).json as { token: string };
    return { ...account, id: made.id, session: token };
  }

  /** A new agent of the first owner, with its key. */
  async function makeAgent(session: string, agentId = `agent-${randomUUID()}`): Promise<Agent> {
    return (await must('/api/agent/keys', { bearer: session, json: { agentId } })).json as Agent;
  }

  async function plan(fields: Record<string, unknown>, bearer?: string) {
    return (await must('/api/transfer-plan', { json: fields, bearer })).json as {
      planId: string; plan: string; lane: string; upload: { method: string; url: string; headers: Record<string, string> };
    } & Record<string, unknown>;
  }

  /** A planned upload by the single lane. `fields` are those of the plan. */
  async function upload(content: string | Buffer, fields: Record<string, unknown> = {}, bearer?: string): Promise<Uploaded> {
    const body = Buffer.from(content);
    const planned = await plan({ filename: 'test.txt', mimeType: 'text/plain', size: body.length, lane: 'single', ...fields }, bearer);
    const { method, url, headers } = planned.upload;
    return (await must(url, { method, headers, body: new Uint8Array(body) })).json as Uploaded;
  }

  async function grant(shareId: string, key: string): Promise<string> {
    return (await must('/api/agent/grants', { bearer: key, json: { shareId } })).json.accessToken as string;
  }

  /** The events of the owner that match, newest first; waits until there are `atLeast`. */
  async function events(session: string, query: Record<string, string>, atLeast = 1): Promise<Record<string, unknown>[]> {
    const search = new URLSearchParams({ limit: '100', ...query });
    const end = Date.now() + 15_000;
    for (;;) {
      const found = (await must(`/api/audit?${search}`, { bearer: session })).json.events as Record<string, unknown>[];
      if (found.length >= atLeast || Date.now() > end) return found;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  return { baseUrl, owner, call, must, signIn, makeOwner, makeAgent, plan, upload, grant, events };
}

/** The exchange that all tests share. */
export function sharedExchange(): Exchange {
  return exchangeAt(inject('baseUrl'), inject('owner'));
}
