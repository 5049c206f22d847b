/** What holds when many come at once: caps are exact, a grant works once, a completion happens once (interface chapter: States and transitions). */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gatherCrowd, inTurns, tally, type Visit } from '../support/crowd.ts';
import { sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { multipartLane, partsOf } from '../support/multipart-lane.ts';

const exchange = sharedExchange();
const { call, must, signIn, makeAgent, upload, grant, events } = exchange;

const crowd = gatherCrowd();
let session: string;
let agent: Agent;
beforeAll(async () => {
  session = await signIn();
  agent = await makeAgent(session);
});
afterAll(() => crowd.leave());

const times = (count: number, visit: Visit = {}) => Array.from({ length: count }, () => visit);
const withGrant = (accessGrant: string): Visit => ({ headers: { 'x-access-grant': accessGrant } });
const forAgent = (fields: Record<string, unknown> = {}) => upload('for one agent', { authMode: 'agent', allowedAgentIds: [agent.agentId], ...fields }, session);
const addressOf = ({ id, downloadUrl }: Uploaded) => downloadUrl.slice(0, downloadUrl.indexOf(id) + id.length);

/** The uses that the page of a share says are left. */
async function usesLeft(shareUrl: string): Promise<number> {
  const [, left] = /<dd>(\d+) of \d+<\/dd>/.exec((await must(shareUrl)).text) ?? [];
  return Number(left);
}

/** All events of one type of a share, however many there are. */
async function allEvents(shareId: string, eventType: string): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: { events: Record<string, unknown>[]; nextCursor: string | null } = (await must(`/api/audit?limit=100&shareId=${shareId}&eventType=${eventType}${cursor && `&cursor=${cursor}`}`, { bearer: session })).json;
    found.push(...page.events);
    cursor = page.nextCursor;
  }
  return found;
}

describe('maxUses', () => {
  test.each([1, 2, 7])('500 fetches at once of a share with %i uses: exactly so many succeed', async (maxUses) => {
    const { downloadUrl, shareUrl, shareId } = await upload('capped', { maxUses }, session);
    const visited = await crowd.visit(downloadUrl, times(500));
    expect(tally(visited)).toEqual({ 200: maxUses, share_use_limit_exceeded: 500 - maxUses });
    expect(visited.filter(({ length, status }) => status === 200 && length === 6)).toHaveLength(maxUses);
    expect(await usesLeft(shareUrl)).toBe(0);
    expect(await events(session, { shareId, eventType: 'transfer.fetched' }, maxUses)).toHaveLength(maxUses);
    expect(await events(session, { shareId, eventType: 'share.exhausted' })).toHaveLength(1);
  }, 120_000);

  test('HEAD, 304, 416 and refused prefetches among 400 fetches spend nothing', async () => {
    const { downloadUrl, shareUrl, id } = await upload('looked at and fetched', { maxUses: 7 });
    const visits = [
      ...times(100, { method: 'HEAD' }), ...times(100, { headers: { range: 'bytes=999-' } }), ...times(100, { headers: { 'if-none-match': `"${id}"` } }),
      ...times(50, { headers: { 'sec-purpose': 'prefetch' } }), ...times(25), ...times(25, { headers: { range: 'bytes=0-5' } }),
    ];
    const counts = tally(await crowd.visit(downloadUrl, visits));
    const { 200: ok = 0, 206: partial = 0 } = counts;
    // HEAD answers 200 and spends nothing.
    expect({ ...counts, 200: ok - 100 + partial, 206: undefined }).toEqual({ 200: 7, 206: undefined, 304: 100, range_not_satisfiable: 100, forbidden: 50, share_use_limit_exceeded: 43 });
    expect(await usesLeft(shareUrl)).toBe(0);
  }, 120_000);

  test.each([['a small file', 1_000], ['a file of 2 MiB', 2 * 1_024 ** 2]])('clients that leave, of %s: every use is either spent by an answer that began or still there', async (_title, size) => {
    const maxUses = 100;
    const { downloadUrl, shareUrl, shareId } = await upload(randomBytes(size), { maxUses }, session);
    const visits = [
      ...times(60), ...times(40, { headers: { range: 'bytes=0-99' } }), ...times(40, { method: 'HEAD' }), ...times(60, { leave: 'at once' }), ...times(30, { leave: 'when answered' }),
    ];
    const visited = await crowd.visit(downloadUrl, visits);
    const isHead = (index: number) => visits[index]!.method === 'HEAD';
    let began = visited.filter(({ status }, index) => (status === 200 || status === 206) && !isHead(index)).length;
    expect(began).toBeLessThanOrEqual(maxUses);

    // Whatever is still there can be fetched, and what the record says adds up with it, down to the last use.
    let spent = 0;
    const end = Date.now() + 40_000;
    do {
      const { status } = await call(downloadUrl, { headers: { range: 'bytes=0-0' } });
      if (status === 206) began += 1;
      const fetched = await allEvents(shareId, 'transfer.fetched');
      spent = fetched.filter(({ outcome }) => outcome === 'allowed').length - fetched.filter(({ outcome }) => outcome === 'error').length;
    } while ((spent < maxUses || (await usesLeft(shareUrl)) > 0) && Date.now() < end);
    expect(spent).toBe(maxUses);
    expect(began).toBeLessThanOrEqual(maxUses);
    expect(began).toBeGreaterThanOrEqual(maxUses - 60);
    expect((await call(downloadUrl)).status).toBe(410);
  }, 120_000);
});

describe('grants', () => {
  test('20 racers on each of 200 grants: 200 succeed, 3,800 find it used', async () => {
    const shared = await forAgent();
    const grants = await inTurns(200, 20, () => grant(shared.shareId, agent.key));
    const visited = await inTurns(200, 15, async (index) => {
      const racers = await crowd.visit(addressOf(shared), times(20, withGrant(grants[index]!)));
      expect(tally(racers)).toEqual({ 200: 1, grant_already_used: 19 });
      return racers;
    });
    expect(tally(visited.flat())).toEqual({ 200: 200, grant_already_used: 3_800 });
    const end = Date.now() + 20_000;
    let redeemed = await allEvents(shared.shareId, 'grant.redeemed');
    while (redeemed.length < 200 && Date.now() < end) redeemed = await allEvents(shared.shareId, 'grant.redeemed');
    expect(redeemed).toHaveLength(200);
    expect(new Set(redeemed.map(({ targetId }) => targetId)).size).toBe(200);
  }, 240_000);

  test('50 grants at once on a share with 5 uses: 5 succeed, and the others stay good for nothing', async () => {
    const shared = await forAgent({ maxUses: 5 });
    const grants = await inTurns(50, 10, () => grant(shared.shareId, agent.key));
    const visited = await crowd.visit(addressOf(shared), grants.map(withGrant));
    expect(tally(visited)).toEqual({ 200: 5, share_use_limit_exceeded: 45 });
    const again = await crowd.visit(addressOf(shared), grants.map(withGrant));
    expect(tally(again)).toEqual({ grant_already_used: 5, share_use_limit_exceeded: 45 });
    expect(await usesLeft(shared.shareUrl)).toBe(0);
  }, 120_000);

  test('a grant raced on its own target, on another and with another share_id: the wrong tries leave it unused', async () => {
    const [shared, other] = [await forAgent(), await forAgent()];
    const accessGrant = await grant(shared.shareId, agent.key);
    const wrong = await crowd.visit(addressOf(other), times(50, withGrant(accessGrant)));
    expect(tally(wrong)).toEqual({ invalid_grant: 50 });
    expect(tally(await crowd.visit(`${addressOf(shared)}?share_id=${other.shareId}`, times(50, withGrant(accessGrant))))).toEqual({ invalid_grant: 50 });
    expect(tally(await crowd.visit(addressOf(shared), times(50, withGrant(accessGrant))))).toEqual({ 200: 1, grant_already_used: 49 });
  });
});

describe('creations', () => {
  test('50 completes of one multipart upload at once: one answer, one transfer, one share', async () => {
    const lane = multipartLane(exchange);
    const speaker = { bearer: session };
    const parts = partsOf(2, 1_000);
    const { uploadId } = await lane.begin(parts.reduce((sum, part) => sum + part.length, 0), { maxUses: 3 }, speaker);
    const listed = await lane.sendAll(uploadId, parts, speaker);
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => lane.complete(uploadId, index % 2 ? {} : { parts: listed }, speaker)));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, answers.map(({ text }) => text).join('\n')).toBe(1);
    expect(answers[0]!.status).toBe(201);
    const { shareId, downloadUrl } = answers[0]!.json as Uploaded;
    expect((await must(downloadUrl)).bytes.equals(Buffer.concat(parts))).toBe(true);
    const found = await events(session, { shareId }, 5);
    expect(found.map(({ eventType }) => eventType).sort()).toEqual(['share.created', 'transfer.fetched', 'transfer.stored', 'upload.completed', 'upload.initialized']);
  }, 120_000);

  test('50 uploads under one plan at once: one answer, one transfer', async () => {
    const { upload: lane } = await exchange.plan({ filename: 'a.txt', size: 5, lane: 'single' }, session);
    const answers = await Promise.all(Array.from({ length: 50 }, () => call(lane.url, { method: lane.method, headers: lane.headers, body: 'bytes' })));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, answers.map(({ text }) => text).join('\n')).toBe(1);
    const { shareId } = answers[0]!.json as Uploaded;
    expect((await events(session, { shareId }, 2)).map(({ eventType }) => eventType).sort()).toEqual(['share.created', 'transfer.stored']);
  });

  test('50 deletes at once: one answer, one event of each kind', async () => {
    const { id, shareId, deleteToken } = await upload('to be deleted', {}, session);
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => call(`/api/dl/${id}`, { method: 'DELETE', ...(index % 2 ? { bearer: session } : { headers: { 'x-delete-token': deleteToken } }) })));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(new Set([`200 ${JSON.stringify({ id, deleted: true })}`]));
    expect((await events(session, { shareId }, 4)).map(({ eventType }) => eventType).sort()).toEqual(['share.created', 'share.ended', 'transfer.deleted', 'transfer.stored']);
  });
});
