/** The audit record against a real PostgreSQL: events once, walks without gap or repeat. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import type { Database } from '../../../shared/db.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { filtersOf } from '../domain/filters.ts';
import type { RecordedEvent } from '../domain/message.ts';
import { isRefusedForGood, openEventStore, type EventStore } from './events.ts';
import { readInOrder } from './select-events.ts';

let scratch: ScratchDatabase;
let database: Database;
let store: EventStore;

function makeEvent(facts: Partial<RecordedEvent> = {}): RecordedEvent {
  return {
    id: randomUUID(), eventType: 'share.created', occurredAt: '2026-03-01T12:00:00.000Z', ownerId: 'own_a', actor: { type: 'owner', id: 'own_a' },
    agentId: null, targetType: 'share', targetId: 'shr_a', shareId: 'shr_a', outcome: 'allowed', requestId: null, data: {}, ...facts,
  };
}

/** Walks to the end, doing something between pages. Answers the ids in the order they came. */
async function walk(ownerId: string, pageSize: number, between: () => Promise<unknown> = async () => undefined): Promise<string[]> {
  const filters = filtersOf(ownerId, { limit: pageSize });
  const ids: string[] = [];
  let rows = await store.listEvents(filters, undefined, pageSize);
  while (rows.length > 0) {
    ids.push(...rows.map((row) => row.event.id));
    await between();
    rows = await store.listEvents(filters, rows.at(-1)!.position, pageSize);
  }
  return ids;
}

describe('audit record', () => {
  beforeAll(async () => {
    scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url), readInOrder);
    database = scratch.database;
    store = openEventStore(database, systemClock);
  });

  afterAll(() => scratch.drop());

  test('an event is recorded once, however often it comes', async () => {
    const ownerId = randomUUID();
    const [first, second] = [makeEvent({ ownerId }), makeEvent({ ownerId })];
    expect(await store.recordEvents([first, first])).toBe(1);
    expect(await store.recordEvents([first, second])).toBe(1);
    expect((await walk(ownerId, 10)).sort()).toEqual([first.id, second.id].sort());
  });

  test('an event is read as it was written', async () => {
    const ownerId = randomUUID();
    const event = makeEvent({ ownerId, occurredAt: '2026-03-01T12:00:00.123Z', code: 'invalid_grant', ip: '::1', data: { name: 'a"\\ü\u202e', n: 2 ** 53 } });
    await store.recordEvents([event]);
    const [row] = await store.listEvents(filtersOf(ownerId, { limit: 1 }), undefined, 1);
    expect(row).toEqual({ position: { occurredAt: event.occurredAt, id: event.id }, event });
  });

  test('each filter finds its own, and no owner sees what belongs to another', async () => {
    const ownerId = randomUUID();
    const common = { ownerId, eventType: 'grant.issued', agentId: 'agt_x', targetType: 'grant', targetId: 'gnt_x', shareId: 'shr_x', occurredAt: '2026-04-01T00:00:00.000Z' } as const;
    const wanted = makeEvent(common);
    await store.recordEvents([wanted, makeEvent({ ownerId }), makeEvent({ ...common, ownerId: null }), makeEvent({ ...common, ownerId: randomUUID() })]);
    const { eventType, agentId, targetType, targetId, shareId } = common;
    const queries = [{ eventType }, { agentId }, { targetType }, { targetId }, { shareId }, { from: '2026-04-01T00:00:00Z' }, { from: '2026-03-31T00:00:00Z', to: '2026-04-01T00:00:00.001Z' }];
    for (const query of queries) {
      const rows = await store.listEvents(filtersOf(ownerId, { limit: 10, ...query }), undefined, 10);
      expect(rows.map((row) => row.event.id), JSON.stringify(query)).toEqual([wanted.id]);
    }
    const before = await store.listEvents(filtersOf(ownerId, { limit: 10, eventType, to: '2026-04-01T00:00:00Z' }), undefined, 10);
    expect(before).toEqual([]);
  });

  test('a walk while others write meets each event that was there exactly once', async () => {
    const ownerId = randomUUID();
    // Few distinct times, so that pages end inside of a run of equal ones.
    const at = (n: number) => new Date(Date.UTC(2026, 2, 1) + (n % 7)).toISOString();
    const there = Array.from({ length: 500 }, (_, n) => makeEvent({ ownerId, occurredAt: at(n) }));
    await store.recordEvents(there);
    const seen = await walk(ownerId, 13, () => store.recordEvents(Array.from({ length: 5 }, (_, n) => makeEvent({ ownerId, occurredAt: at(n) }))));
    expect(new Set(seen).size).toBe(seen.length);
    expect(there.filter((event) => !seen.includes(event.id))).toEqual([]);
  });

  test('what the database can never hold is told from what may pass later', async () => {
    const refusal = await store.recordEvents([makeEvent({ data: { text: '\0' } })]).catch((error: unknown) => error);
    expect(isRefusedForGood(refusal)).toBe(true);
    const tooLong = Array.from({ length: 1_500 }, () => randomUUID()).join('');
    expect(isRefusedForGood(await store.recordEvents([makeEvent({ targetId: tooLong })]).catch((error: unknown) => error))).toBe(true);
    expect(isRefusedForGood(Object.assign(new Error(), { code: '57P01' }))).toBe(false);
  });
});
