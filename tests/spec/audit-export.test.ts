/** Exporting the audit record: GET /api/audit?format=ndjson (interface chapter: Audit). */
import type { IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';
import { beginDownload } from '../support/unruly-client.ts';

const { baseUrl, call, must, signIn, makeOwner, makeAgent, upload, grant, events } = sharedExchange();

type Event = Record<string, unknown>;

let session: string;
let agent: Agent;
let shared: Uploaded;

const pathOf = (query: Record<string, string>) => `/api/audit?${new URLSearchParams({ format: 'ndjson', ...query })}`;
const linesOf = (text: string) => text.split('\n').slice(0, -1).map((line) => JSON.parse(line) as Event);

async function exportOf(query: Record<string, string>, bearer = session): Promise<Event[]> {
  const { text } = await must(pathOf(query), { bearer });
  expect(text === '' || text.endsWith('\n')).toBe(true);
  return linesOf(text);
}

/** The same by pages. */
async function pagesOf(query: Record<string, string>): Promise<Event[]> {
  const met: Event[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = (await must(`/api/audit?${new URLSearchParams({ ...query, limit: '100', ...(cursor && { cursor }) })}`, { bearer: session })).json as { events: Event[]; nextCursor: string | null };
    met.push(...page.events);
    cursor = page.nextCursor;
  }
  return met;
}

/** Resolves a share so many times, and waits until all of it is recorded. */
async function resolveOften(shareId: string, times: number): Promise<void> {
  let left = times;
  await Promise.all(Array.from({ length: 16 }, async () => { while (left-- > 0) await must(`/api/share/${shareId}`); }));
  const end = Date.now() + 60_000;
  while ((await exportOf({ shareId, eventType: 'share.resolved' })).length < times && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 250));
}

/** What comes of an answer, and whether it came to its end. */
async function readAll(answer: IncomingMessage): Promise<{ text: string; whole: boolean }> {
  let text = '';
  try {
    for await (const chunk of answer.setEncoding('utf8')) text += chunk as string;
  } catch {
    return { text, whole: false };
  }
  return { text, whole: answer.complete };
}

beforeAll(async () => {
  session = await signIn();
  agent = await makeAgent(session);
  shared = await upload('exported', { authMode: 'agent', allowedAgentIds: [agent.agentId] }, agent.key);
  for (let round = 0; round < 3; round += 1) await must(`/api/dl/${shared.id}`, { headers: { 'x-access-grant': await grant(shared.shareId, agent.key) } });
  // stored, created, and three times: issued, redeemed, fetched
  await events(session, { shareId: shared.shareId }, 11);
});

describe('GET /api/audit?format=ndjson', () => {
  test('is an attachment of one event a line, newest first, the same as the pages have', async () => {
    const { shareId } = shared;
    const answer = await call(pathOf({ shareId }), { bearer: session });
    expect(answer.status).toBe(200);
    expectSafeHeaders(answer.headers);
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="audit.ndjson"');
    expect(linesOf(answer.text)).toEqual(await pagesOf({ shareId }));
    expect(linesOf(answer.text)).toHaveLength(11);
  });

  test('format=json is the page as it is without', async () => {
    const query = `/api/audit?shareId=${shared.shareId}`;
    expect((await must(`${query}&format=json`, { bearer: session })).json).toEqual((await must(query, { bearer: session })).json);
  });

  test('takes every filter of a page', async () => {
    const { shareId, id: targetId } = shared;
    const at = (await pagesOf({ shareId }))[5]!['occurredAt'] as string;
    const filters: Record<string, string>[] = [
      { shareId, eventType: 'grant.issued' }, { targetId }, { shareId, targetType: 'grant' }, { agentId: agent.agentId }, { shareId, from: at }, { shareId, to: at }, { shareId, eventType: 'share.created', targetType: 'file' },
    ];
    for (const filter of filters) expect(await exportOf(filter), JSON.stringify(filter)).toEqual(await pagesOf(filter));
    expect(await exportOf({ shareId, eventType: 'nothing.happened' })).toEqual([]);
  });

  test('never has events of another owner', async () => {
    const other = await makeOwner(session);
    await events(other.session, {}, 1);
    expect(await exportOf({ shareId: shared.shareId }, other.session)).toEqual([]);
    expect(new Set((await exportOf({}, other.session)).map((event) => event['ownerId']))).toEqual(new Set([other.id]));
  });

  test('without a session answers owner_auth_required, and with an agent key invalid_owner_credential', async () => {
    expectRefusal(await call(pathOf({})), 401, 'owner_auth_required');
    expectRefusal(await call(pathOf({}), { bearer: agent.key }), 401, 'invalid_owner_credential');
  });

  test.each([['format', 'csv'], ['format', ''], ['format', 'NDJSON'], ['from', 'yesterday'], ['targetType', 'files'], ['owner', 'me'], ['limit', '10'], ['cursor', 'x']])('%s=%s answers invalid_request', async (name, value) => {
    expectRefusal(await call(`/api/audit?${new URLSearchParams({ ...(name !== 'format' && { format: 'ndjson' }), [name]: value })}`, { bearer: session }), 400, 'invalid_request', name);
  });

  test('a format that is given twice is refused', async () => {
    expectRefusal(await call('/api/audit?format=json&format=ndjson', { bearer: session }), 400, 'invalid_request', 'format');
  });

  test('the interface description shows both forms', async () => {
    const { content } = (await must('/openapi.json')).json.paths['/api/audit'].get.responses['200'];
    expect(Object.keys(content)).toEqual(['application/json', 'application/x-ndjson']);
  });
});

describe('an export of 5,000 events', () => {
  const resolved = { eventType: 'share.resolved' };
  let shareId: string;

  beforeAll(async () => {
    ({ shareId } = await upload('much looked at', {}, session));
    await resolveOften(shareId, 5_000);
  }, 120_000);

  test('has each of them once', async () => {
    const lines = await exportOf({ shareId, ...resolved });
    expect(lines).toHaveLength(5_000);
    expect(new Set(lines.map(({ id }) => id)).size).toBe(5_000);
    const order = lines.map(({ occurredAt }) => occurredAt as string);
    expect(order).toEqual([...order].sort().reverse());
  });

  test('is broken off, not ended, when its session ends in the middle', async () => {
    const leaving = await signIn();
    const answer = await beginDownload(new URL(pathOf({ shareId }), baseUrl).href, { authorization: `Bearer ${leaving}` });
    expect(answer.statusCode).toBe(200);
    await must('/api/owner/session', { method: 'DELETE', bearer: leaving });
    const { text, whole } = await readAll(answer);
    expect(whole).toBe(false);
    expect(text.split('\n').length).toBeLessThan(5_000);
  });

  test('clients that leave in the middle hold up nobody', async () => {
    const address = new URL(pathOf({ shareId }), baseUrl).href;
    for (let round = 0; round < 20; round += 1) (await beginDownload(address, { authorization: `Bearer ${session}` })).destroy();
    const began = Date.now();
    expect(await exportOf({ shareId: shared.shareId })).toHaveLength(11);
    expect(Date.now() - began).toBeLessThan(5_000);
  });
});
