/** Shares by their owner against a real PostgreSQL: exact caps under races, exact pages, one end. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../shared/db.ts';
import { eventOfService, type EventType } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import type { SharePosition } from '../domain/share-cursor.ts';
import type { Share } from '../domain/share.ts';
import { fetchesStore } from './fetches.ts';
import { ownSharesStore } from './own-shares.ts';
import { sharesStore } from './shares.ts';

let scratch: ScratchDatabase;
let database: Database;
let store: ReturnType<typeof fetchesStore> & ReturnType<typeof ownSharesStore> & ReturnType<typeof sharesStore>;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  database = scratch.database;
  store = { ...fetchesStore(database), ...ownSharesStore(database), ...sharesStore(database) };
});
afterAll(() => scratch.drop());

const event = (eventType: EventType) => eventOfService('policy', Date.now(), { eventType, targetType: 'share', targetId: null });

async function newShare(facts: Partial<Share> = {}): Promise<Omit<Share, 'uses'>> {
  const share = {
    id: newId('share'), targetType: 'file' as const, targetId: newId('transfer'), filename: 'a', mimeType: 'text/plain', size: 1,
    mode: 'open' as const, allowedAgentIds: [], maxUses: null, metadata: {}, ownerId: newId('owner'), agentId: null,
    expiresAt: new Date(Date.now() + 60_000), passcodeHash: null, ...facts,
  };
  await store.createShare(share, event('share.created'));
  return share;
}

const whose = ({ ownerId }: Pick<Share, 'ownerId'>) => ({ ownerId: ownerId! });
const fetch = ({ id, targetId }: Omit<Share, 'uses'>) => store.spendOpenUse({ fetchId: randomUUID(), shareId: id, targetId }, [event('transfer.fetched'), event('share.exhausted')]);
const update = (share: Omit<Share, 'uses'>, changes: Parameters<typeof store.updateShare>[2]['changes'], from = whose(share)) =>
  store.updateShare(share.id, from, { changes, keptUntil: share.expiresAt }, event('share.updated'));
const revoke = (share: Omit<Share, 'uses'>, from = whose(share)) => store.revokeShare(share.id, from, event('share.revoked'));
const list = (share: Pick<Share, 'ownerId'>, more: Partial<Parameters<typeof store.listShares>[0]> = {}) =>
  store.listShares({ whose: whose(share), filters: {}, after: undefined, limit: 200, ...more });

async function eventsOf(ownerId: string | null, eventType: EventType): Promise<number> {
  return (await database.run((sql) => sql`select from outbox where event->>'eventType' = ${eventType} and event->>'ownerId' = ${ownerId}`)).length;
}

describe('changing a share', () => {
  test('a cap that falls during 60 fetches is never passed, and every use is counted', async () => {
    for (let round = 0; round < 5; round += 1) {
      const share = await newShare({ maxUses: 40 });
      const caps = [30, 20, 10, 5];
      const [fetched, capped] = await Promise.all([
        Promise.all(Array.from({ length: 60 }, () => fetch(share))),
        Promise.all(caps.map((maxUses) => update(share, { maxUses }))),
      ]);
      const found = (await store.findOwnShare(share.id, whose(share)))!;
      expect(fetched.filter((one) => typeof one === 'object' && one.uses !== null)).toHaveLength(found.uses);
      expect(found.uses).toBeLessThanOrEqual(found.maxUses!);
      expect(await eventsOf(share.ownerId, 'share.updated')).toBe(capped.filter(Boolean).length);
      if (found.maxUses !== 40) expect(capped.map((one) => one?.maxUses)).toContain(found.maxUses);
    }
  });

  test('a cap below the uses that are spent changes nothing and tells nothing', async () => {
    const share = await newShare({ maxUses: 5 });
    for (let spent = 0; spent < 3; spent += 1) await fetch(share);
    expect(await update(share, { maxUses: 2 })).toBeUndefined();
    expect(await eventsOf(share.ownerId, 'share.updated')).toBe(0);
    expect(await update(share, { maxUses: 3 })).toMatchObject({ maxUses: 3, state: 'exhausted' });
    expect(await update(share, { maxUses: null })).toMatchObject({ maxUses: null, state: 'active', uses: 3 });
  });

  test('a field that is not named stays, and the bytes are remembered as kept the longest time', async () => {
    const share = await newShare({ metadata: { a: 'b' }, maxUses: 4 });
    const [sooner, later] = [new Date(Date.now() + 30_000), new Date(Date.now() + 90_000)];
    expect(await update(share, { expiresAt: sooner })).toMatchObject({ expiresAt: sooner, targetExpiresAt: share.expiresAt, metadata: { a: 'b' }, maxUses: 4 });
    const kept = await store.updateShare(share.id, whose(share), { changes: { metadata: {} }, keptUntil: later }, event('share.updated'));
    expect(kept).toMatchObject({ expiresAt: sooner, targetExpiresAt: later, metadata: {} });
  });

  test('another owner, another agent and an ended share change nothing', async () => {
    const share = await newShare({ agentId: 'a' });
    expect(await update(share, { maxUses: 1 }, { ownerId: 'own_other' })).toBeUndefined();
    expect(await store.updateShare(share.id, { ...whose(share), agentId: 'b' }, { changes: { maxUses: 1 }, keptUntil: share.expiresAt }, event('share.updated'))).toBeUndefined();
    await revoke(share);
    expect(await update(share, { maxUses: 1 })).toBeUndefined();
  });
});

describe('revoking a share', () => {
  test('happens once among 20, each of which is told that it is revoked', async () => {
    const share = await newShare();
    expect(await Promise.all(Array.from({ length: 20 }, () => revoke(share)))).not.toContain(false);
    expect(await revoke(share)).toBe(true);
    expect(await eventsOf(share.ownerId, 'share.revoked')).toBe(1);
    expect(await fetch(share)).toBeUndefined();
  });

  test('is not for another owner, nor for a share that ended otherwise', async () => {
    const share = await newShare();
    expect(await revoke(share, { ownerId: 'own_other' })).toBe(false);
    await store.endShares([share.targetId], event('share.ended'));
    expect(await revoke(share)).toBe(false);
    expect(await list(share)).toMatchObject([{ state: 'deleted' }]);
  });

  test('is remembered as long as its bytes are there: an upload that is sent again finds it', async () => {
    const share = await newShare();
    await revoke(share);
    const gone = await newShare();
    await store.endShares([gone.targetId], event('share.ended'));
    await database.run((sql) => sql`update shares set ended_at = now() - interval '3 days' where id in (${share.id}, ${gone.id})`);
    await store.purgeShares();
    expect(await list(gone)).toEqual([]);
    await store.createShare(share, event('share.created'));
    expect(await list(share)).toMatchObject([{ state: 'revoked' }]);
  });
});

describe('listing shares', () => {
  test('says of each how it stands', async () => {
    const { ownerId } = await newShare();
    const used = await newShare({ ownerId, maxUses: 1 });
    await fetch(used);
    await newShare({ ownerId, expiresAt: new Date(Date.now() - 1) });
    const revoked = await newShare({ ownerId });
    await revoke(revoked);
    expect((await list({ ownerId })).map(({ state }) => state)).toEqual(['revoked', 'expired', 'exhausted', 'active']);
    for (const state of ['revoked', 'expired', 'exhausted', 'active'] as const) expect(await list({ ownerId }, { filters: { state } })).toMatchObject([{ state }]);
    await store.expireShares(event('share.expired'));
    expect(await list({ ownerId }, { filters: { state: 'expired' } })).toHaveLength(1);
  });

  test('a walk in small pages meets each share once, also those of one moment, while others are made', async () => {
    const { ownerId } = await newShare();
    await Promise.all(Array.from({ length: 30 }, () => newShare({ ownerId })));
    await database.run((sql) => sql`update shares set created_at = timestamptz '2026-01-01 00:00:00.000001Z' where owner_id = ${ownerId} and id < 'shr_V'`);
    const expected = (await list({ ownerId })).map(({ id }) => id);
    const met: string[] = [];
    let after: SharePosition | undefined;
    for (;;) {
      const page = await list({ ownerId }, { after, limit: 4 });
      await newShare({ ownerId });
      met.push(...page.map(({ id }) => id));
      if (page.length < 4) break;
      after = page.at(-1)!.position;
    }
    expect(met).toEqual(expected);
  });
});
