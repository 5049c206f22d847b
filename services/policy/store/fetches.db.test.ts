/** Uses and grants against a real PostgreSQL: exact counts under races, and giving back. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../shared/db.ts';
import { eventOfService, type EventType } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import type { Share } from '../domain/share.ts';
import { fetchesStore } from './fetches.ts';
import { sharesStore } from './shares.ts';

let scratch: ScratchDatabase;
let database: Database;
let store: ReturnType<typeof fetchesStore> & ReturnType<typeof sharesStore>;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  database = scratch.database;
  store = { ...fetchesStore(database), ...sharesStore(database) };
});
afterAll(() => scratch.drop());

const event = (eventType: EventType) => eventOfService('policy', Date.now(), { eventType, targetType: 'share', targetId: null });
const spending = () => [event('transfer.fetched'), event('share.exhausted')];

async function newShare(facts: Partial<Share> = {}): Promise<Omit<Share, 'uses'>> {
  const share = {
    id: newId('share'), targetType: 'file' as const, targetId: newId('transfer'), filename: 'a', mimeType: 'text/plain', size: 1,
    mode: 'open' as const, allowedAgentIds: [], maxUses: null, metadata: {}, ownerId: 'own_1', agentId: null,
    expiresAt: new Date(Date.now() + 60_000), passcodeHash: null, ...facts,
  };
  await store.createShare(share, event('share.created'));
  return share;
}

const openFetch = (share: Omit<Share, 'uses'>) => ({ fetchId: randomUUID(), shareId: share.id, targetId: share.targetId });
const grantFetch = (share: Omit<Share, 'uses'>, grantId = newId('grant')) => ({ ...openFetch(share), grantId, agentId: 'a' });
const agentShare = (facts: Partial<Share> = {}) => newShare({ mode: 'agent', allowedAgentIds: ['a'], ...facts });

async function usesOf(share: Omit<Share, 'uses'>): Promise<number> {
  const [row] = await database.run((sql) => sql<{ uses: number }[]>`select uses from shares where id = ${share.id}`);
  return row!.uses;
}

async function eventsOf(share: Omit<Share, 'uses'>, eventType: EventType): Promise<number> {
  const rows = await database.run((sql) => sql`
    select from outbox where event->>'eventType' = ${eventType} and (event->>'shareId' = ${share.id} or event->>'targetId' = ${share.id})`);
  return rows.length;
}

describe('spending a use', () => {
  test.each([1, 2, 7])('maxUses %i is exact when 100 fetches come at once, each with its event', async (maxUses) => {
    const share = await newShare({ maxUses });
    const shared = () => spending().map((one) => ({ ...one, shareId: share.id }));
    const found = await Promise.all(Array.from({ length: 100 }, () => store.spendOpenUse(openFetch(share), shared())));
    expect(found.filter((one) => typeof one === 'object' && one.uses !== null)).toHaveLength(maxUses);
    expect(await usesOf(share)).toBe(maxUses);
    expect(await eventsOf(share, 'transfer.fetched')).toBe(maxUses);
    expect(await eventsOf(share, 'share.exhausted')).toBe(1);
  });

  test('without a cap nothing is written', async () => {
    const share = await newShare();
    expect(await store.spendOpenUse(openFetch(share), spending())).toMatchObject({ mode: 'open', maxUses: null, uses: null });
    expect(await usesOf(share)).toBe(0);
  });

  test('another target, an ended and an expired share give nothing', async () => {
    const share = await newShare({ maxUses: 1 });
    expect(await store.spendOpenUse({ ...openFetch(share), targetId: newId('transfer') }, spending())).toBeUndefined();
    await store.endShares([share.targetId], event('share.ended'));
    expect(await store.spendOpenUse(openFetch(share), spending())).toBeUndefined();
    const expired = await newShare({ expiresAt: new Date(Date.now() - 1) });
    expect(await store.spendOpenUse(openFetch(expired), spending())).toBeUndefined();
  });
});

describe('spending a grant', () => {
  test('works once among 50 racers, and counts one use', async () => {
    const share = await agentShare();
    const grantId = newId('grant');
    const spent = await Promise.all(Array.from({ length: 50 }, () => store.spendGrant(grantFetch(share, grantId), spending())));
    expect(spent.filter((one) => typeof one === 'object')).toHaveLength(1);
    expect(spent.filter((one) => one === 'grant_already_used')).toHaveLength(49);
    expect(await usesOf(share)).toBe(1);
  });

  test('a refused try leaves the grant unused', async () => {
    const share = await agentShare();
    const fetch = grantFetch(share);
    expect(await store.spendGrant({ ...fetch, agentId: 'b' }, spending())).toBe('refused');
    expect(await store.isGrantUsed(fetch.grantId)).toBe(false);
    expect(await store.spendGrant(fetch, spending())).toMatchObject({ uses: 1 });
  });

  test('the cap counts over all agents', async () => {
    const share = await agentShare({ maxUses: 5 });
    const spent = await Promise.all(Array.from({ length: 50 }, () => store.spendGrant(grantFetch(share), spending())));
    expect(spent.filter((one) => typeof one === 'object')).toHaveLength(5);
  });
});

describe('a share with a passcode', () => {
  test('lets an open fetch through only when its own passcode was checked', async () => {
    const share = await newShare({ maxUses: 1, passcodeHash: 'hash' });
    for (const passcodeHash of [undefined, null, 'other']) {
      const found = await store.spendOpenUse({ ...openFetch(share), ...(passcodeHash !== undefined && { passcodeHash }) }, spending());
      expect(found).toMatchObject({ passcodeHash: 'hash', uses: null });
    }
    expect(await usesOf(share)).toBe(0);
    expect(await store.spendOpenUse({ ...openFetch(share), passcodeHash: 'hash' }, spending())).toMatchObject({ uses: 1 });
  });

  test('leaves a grant unused until its passcode was checked', async () => {
    const share = await agentShare({ passcodeHash: 'hash' });
    const fetch = grantFetch(share);
    expect(await store.spendGrant(fetch, spending())).toBe('refused');
    expect(await store.isGrantUsed(fetch.grantId)).toBe(false);
    expect(await store.spendGrant({ ...fetch, passcodeHash: 'hash' }, spending())).toMatchObject({ uses: 1 });
  });

  test('a passcode that no share asks for lets nothing through either', async () => {
    const share = await agentShare();
    expect(await store.spendGrant({ ...grantFetch(share), passcodeHash: 'hash' }, spending())).toBe('refused');
  });
});

describe('giving back', () => {
  test('brings the use and the grant back, once', async () => {
    const share = await agentShare({ maxUses: 1 });
    const fetch = grantFetch(share);
    await store.spendGrant(fetch, spending());
    const returned = await Promise.all(Array.from({ length: 10 }, () => store.returnUse(fetch.fetchId, event('transfer.fetched'))));
    expect(returned.filter(Boolean)).toHaveLength(1);
    expect(await usesOf(share)).toBe(0);
    expect(await store.spendGrant(grantFetch(share, fetch.grantId), spending())).toMatchObject({ uses: 1 });
  });

  test('before the spending arrived, it takes its place', async () => {
    const share = await newShare({ maxUses: 1 });
    const fetch = openFetch(share);
    expect(await store.returnUse(fetch.fetchId, event('transfer.fetched'))).toBe(false);
    expect(await store.spendOpenUse(fetch, spending())).toBe('fetch_returned');
    expect(await usesOf(share)).toBe(0);
  });
});

describe('the end of a share', () => {
  test('is told once by many sweepers at once', async () => {
    const shares = await Promise.all(Array.from({ length: 20 }, () => newShare({ expiresAt: new Date(Date.now() - 1) })));
    await Promise.all(Array.from({ length: 5 }, () => store.expireShares(event('share.expired'))));
    for (const share of shares) expect(await eventsOf(share, 'share.expired')).toBe(1);
  });

  test('a share is created once for its target', async () => {
    const share = await newShare();
    await store.createShare(share, event('share.created'));
    expect(await store.findShare(share.id)).toMatchObject({ targetId: share.targetId });
  });
});
