/** Asking the audit record: filters, bounds and cursors (interface chapter: Audit). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';

interface Event {
  readonly id: string;
  readonly eventType: string;
  readonly occurredAt: string;
  readonly agentId: string | null;
  readonly targetType: string | null;
  readonly targetId: string | null;
  readonly shareId: string | null;
}

interface Page {
  readonly count: number;
  readonly events: Event[];
  readonly nextCursor: string | null;
}

const { call, must, signIn, makeAgent, upload, grant, events } = sharedExchange();

let session: string;
let agent: Agent;
let first: Uploaded;
let second: Uploaded;
/** All that happened to the first share, newest first. */
let all: Event[];

const query = (filters: Record<string, string | number>) => call(`/api/audit?${new URLSearchParams(Object.entries(filters).map(([name, value]): [string, string] => [name, String(value)]))}`, { bearer: session });

async function ask(filters: Record<string, string | number>): Promise<Page> {
  const answer = await query(filters);
  expect(answer.status, answer.text).toBe(200);
  return answer.json as Page;
}

/** All pages from the first to the last. */
async function walk(filters: Record<string, string | number>): Promise<Event[]> {
  const met: Event[] = [];
  let page = await ask(filters);
  for (;;) {
    expect(page.count).toBe(page.events.length);
    met.push(...page.events);
    if (page.nextCursor === null) return met;
    page = await ask({ ...filters, cursor: page.nextCursor });
  }
}

beforeAll(async () => {
  session = await signIn();
  agent = await makeAgent(session);
  const fields = { authMode: 'agent', allowedAgentIds: [agent.agentId] };
  first = await upload('first', fields, agent.key);
  second = await upload('second', fields, agent.key);
  for (const { shareId, id } of [first, second]) {
    for (let round = 0; round < 5; round += 1) {
      await must(`/api/share/${shareId}`, { bearer: agent.key });
      await must(`/api/dl/${id}`, { headers: { 'x-access-grant': await grant(shareId, agent.key) } });
      expect((await call(`/api/share/${shareId}`)).status).toBe(401);
    }
    // stored, created, and five times: resolved, issued, redeemed, fetched, denied
    await events(session, { shareId }, 27);
  }
  all = await walk({ shareId: first.shareId, limit: 100 });
});

describe('GET /api/audit', () => {
  test('without a session answers owner_auth_required, and with an agent key invalid_owner_credential', async () => {
    expectRefusal(await call('/api/audit'), 401, 'owner_auth_required');
    expectRefusal(await call('/api/audit', { bearer: agent.key }), 401, 'invalid_owner_credential');
  });

  test('answers a page of events, newest first', async () => {
    const answer = await query({ shareId: first.shareId });
    expectSafeHeaders(answer.headers);
    expect(answer.json).toEqual({ count: 27, events: expect.any(Array), nextCursor: null });
    const times = (answer.json as Page).events.map(({ occurredAt }) => occurredAt);
    expect(times).toEqual([...times].sort().reverse());
  });

  test('without filters shows what is of this owner, 50 at a time', async () => {
    const page = await ask({});
    expect(page.count).toBe(50);
    expect(page.nextCursor).toMatch(/^\S+$/);
    expect(new Set((page.events as unknown as { ownerId: string }[]).map(({ ownerId }) => ownerId)).size).toBe(1);
  });
});

describe('filters of the audit record', () => {
  const types = ['share.resolved', 'share.denied', 'share.created', 'grant.issued', 'grant.redeemed', 'transfer.fetched', 'transfer.stored'];

  test.each(types)('eventType %s', async (eventType) => {
    const found = await ask({ shareId: first.shareId, eventType });
    expect(found.events).toEqual(all.filter((event) => event.eventType === eventType));
    expect(found.count).toBe(/created|stored/.test(eventType) ? 1 : 5);
  });

  test.each(['file', 'share', 'grant', 'pipe', 'folder', 'agent_key', 'policy', 'agent_group', 'standing_permission'])('targetType %s', async (targetType) => {
    const found = await ask({ shareId: first.shareId, targetType });
    expect(found.events).toEqual(all.filter((event) => event.targetType === targetType));
    expect(found.count).toBe({ file: 6, share: 11, grant: 10 }[targetType] ?? 0);
  });

  test('agentId, targetId, and all of them together', async () => {
    const { shareId, id: targetId } = first;
    expect((await ask({ shareId, agentId: agent.agentId })).events).toEqual(all.filter((event) => event.agentId === agent.agentId));
    expect((await ask({ targetId })).events).toEqual(all.filter((event) => event.targetId === targetId));
    const together = { eventType: 'transfer.fetched', agentId: agent.agentId, targetType: 'file', targetId, shareId };
    expect((await ask(together)).count).toBe(5);
    for (const [name, other] of Object.entries({ eventType: 'share.denied', agentId: 'nobody', targetType: 'share', targetId: second.id, shareId: second.shareId })) {
      expect((await ask({ ...together, [name]: other })).count, name).toBe(0);
    }
  });

  test.each([['eventType', 'nothing.happened'], ['agentId', 'agent-of-nobody'], ['targetId', 'trf_nothing'], ['targetId', "' or 1=1 --"], ['shareId', 'shr_nothing']])('%s %s finds nothing', async (name, value) => {
    expect(await ask({ [name]: value })).toEqual({ count: 0, events: [], nextCursor: null });
  });

  test('from is inclusive and to is exclusive, to the millisecond', async () => {
    const { shareId } = first;
    const at = all[13]!.occurredAt;
    const within = (from: string, to: string) => all.filter(({ occurredAt }) => occurredAt >= from && occurredAt < to).map(({ id }) => id);
    const ids = async (filters: Record<string, string>) => (await walk({ shareId, ...filters })).map(({ id }) => id);
    const later = new Date(Date.parse(at) + 1).toISOString();
    expect(await ids({ from: at })).toEqual(within(at, '9'));
    expect(await ids({ to: at })).toEqual(within('0', at));
    expect(await ids({ from: at, to: later })).toEqual(within(at, later));
    expect(await ids({ from: at, to: later })).toContain(all[13]!.id);
    expect(await ids({ from: at, to: at })).toEqual([]);
    expect([...(await ids({ to: at })), ...(await ids({ from: at }))].sort()).toEqual(all.map(({ id }) => id).sort());
  });

  test('times may have an offset, any precision, and lie far away', async () => {
    const { shareId } = first;
    const at = new Date(all[0]!.occurredAt);
    const offset = `${new Date(at.getTime() + 2 * 3_600_000).toISOString().slice(0, -1)}+02:00`;
    expect((await ask({ shareId, from: offset })).events.map(({ id }) => id)).toContain(all[0]!.id);
    expect((await ask({ shareId, from: '1970-01-01T00:00:00Z', to: '9999-12-31T23:59:59Z' })).count).toBe(27);
    expect((await ask({ shareId, from: '0001-01-01T00:00:00.000000001Z' })).count).toBe(27);
    expect((await ask({ shareId, to: '2000-02-29T00:00:00Z' })).count).toBe(0);
  });

  test('from after to answers invalid_request', async () => {
    expectRefusal(await query({ from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' }), 400, 'invalid_request', 'from');
  });

  test.each([
    ['from', 'yesterday'], ['from', '2026-01-01'], ['from', '2026-13-01T00:00:00Z'], ['from', '2025-02-29T00:00:00Z'], ['to', '2026-01-01T25:00:00Z'], ['to', '1767225600'], ['to', ''], ['from', '2026-01-01T00:00:00'],
    ['eventType', ''], ['eventType', 'x'.repeat(65)], ['eventType', 'a\u0000'], ['agentId', 'a b'], ['agentId', ''], ['targetType', 'files'], ['targetType', '__proto__'], ['targetId', ''], ['targetId', 'x'.repeat(129)],
    ['targetId', '\u0000'], ['shareId', 'trf_abc'], ['shareId', 'shr_'], ['cursor', 'x'.repeat(1_025)], ['owner', 'me'],
    ['limit', 0], ['limit', 101], ['limit', 1e9], ['limit', -1], ['limit', 1.5], ['limit', 'abc'], ['limit', ''], ['limit', '1e1'],
  ])('%s=%s answers invalid_request', async (name, value) => {
    expectRefusal(await query({ [name]: value }), 400, 'invalid_request', name);
  });

  test('a filter that is given twice is refused', async () => {
    for (const name of ['eventType', 'targetType', 'shareId', 'limit', 'cursor']) expectRefusal(await call(`/api/audit?${name}=1&${name}=2`, { bearer: session }), 400, 'invalid_request', name);
  });
});

describe('pages of the audit record', () => {
  test.each([1, 7, 26, 27, 28, 100])('a walk by %i meets every event once', async (limit) => {
    expect(await walk({ shareId: first.shareId, limit })).toEqual(all);
    expect((await ask({ shareId: first.shareId, limit })).count).toBe(Math.min(limit, 27));
  });

  test('the same cursor gives the same page again, and another limit goes on from the same place', async () => {
    const { shareId } = first;
    const cursor = (await ask({ shareId, limit: 5 })).nextCursor!;
    const again = await ask({ shareId, limit: 5, cursor });
    expect((await ask({ shareId, limit: 5, cursor })).events).toEqual(again.events);
    expect((await ask({ shareId, limit: 100, cursor })).events).toEqual(all.slice(5));
  });

  test('a cursor that was changed, cut or made up answers invalid_cursor', async () => {
    const { shareId } = first;
    const cursor = (await ask({ shareId, limit: 5 })).nextCursor!;
    const [body = '', mac = ''] = cursor.split('.');
    const claims = JSON.parse(Buffer.from(body.slice(body.indexOf('_') + 1), 'base64url').toString()) as object;
    const changed = `cur_${Buffer.from(JSON.stringify({ ...claims, t: '2000-01-01T00:00:00.000Z' })).toString('base64url')}.${mac}`;
    const forged = [
      '', 'x', 'cur_', 'cur_.', '0', cursor.slice(1), cursor.slice(0, -1), `${cursor}x`, `${cursor}.`, ` ${cursor}`, cursor.toUpperCase(), body, `${body}.`, `.${mac}`, `${body}.${mac}.${mac}`, changed,
      Buffer.from('{"t":"2026-01-01T00:00:00Z"}').toString('base64url'), "' or 1=1 --", '\u0000', 'null', '__proto__', first.deleteToken,
    ];
    for (const one of forged) expectRefusal(await query({ shareId, limit: 5, cursor: one }), 400, 'invalid_cursor');
  });

  test('a cursor belongs to its filters', async () => {
    const { shareId, id } = first;
    const cursor = (await ask({ shareId, limit: 5 })).nextCursor!;
    const others: Record<string, string>[] = [
      {}, { shareId: second.shareId }, { shareId, eventType: 'share.resolved' }, { shareId, agentId: agent.agentId }, { shareId, targetType: 'file' }, { shareId, targetId: id },
      { shareId, from: '2000-01-01T00:00:00Z' }, { shareId, to: '9000-01-01T00:00:00Z' }, { targetId: shareId },
    ];
    for (const filters of others) expectRefusal(await query({ ...filters, cursor }), 400, 'invalid_cursor');
  });

  test('a cursor is no credential', async () => {
    const cursor = (await ask({ limit: 1 })).nextCursor!;
    expectRefusal(await call(`/api/audit?cursor=${cursor}`), 401, 'owner_auth_required');
  });

  test('a walk by 7 has no gap and no repeat while hundreds of events a second arrive', async () => {
    const { shareId } = await upload('much looked at', {}, session);
    let sent = 0;
    let failed = 0;
    let going = true;
    const resolveOnce = async () => {
      const { status } = await call(`/api/share/${shareId}`, { headers: { 'x-request-id': `walk-${randomUUID()}` } });
      if (status === 200) sent += 1;
      else failed += 1;
    };
    const until = async (isEnough: () => boolean) => { while (!isEnough()) await new Promise((resolve) => setTimeout(resolve, 5)); };
    const writers = Array.from({ length: 8 }, async () => { while (going) await resolveOnce(); });
    await until(() => sent >= 300);
    const before = new Map((await walk({ shareId, limit: 100 })).map((event) => [event.id, event]));
    expect(before.size).toBeGreaterThan(100);

    const atBegin = sent;
    const met: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page: Page = await ask({ shareId, limit: 7, ...(cursor && { cursor }) });
      met.push(...page.events.map(({ id }) => id));
      cursor = page.nextCursor;
      // However fast the pages come, events arrive between them.
      const soFar = sent;
      await until(() => sent >= soFar + 10);
    }
    going = false;
    await Promise.all(writers);
    expect(failed).toBe(0);
    expect(sent - atBegin).toBeGreaterThan(met.length);
    expect(new Set(met).size, 'repeated').toBe(met.length);
    const seen = new Set(met);
    expect([...before.keys()].filter((id) => !seen.has(id)), 'gaps').toEqual([]);
  }, 120_000);
});
