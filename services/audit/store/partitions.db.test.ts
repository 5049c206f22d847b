/** The partitions of the audit record against a real PostgreSQL: made by many at once, dropped whole, and unseen by those who record and read. */
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../shared/db.ts';
import { Failure } from '../../../shared/errors.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { filtersOf } from '../domain/filters.ts';
import type { RecordedEvent } from '../domain/message.ts';
import { monthAt } from '../domain/months.ts';
import { keepPartitions } from '../partition-keeper.ts';
import { isRefusedForGood, openEventStore, type EventStore } from './events.ts';
import { openPartitionStore, type PartitionStore } from './partitions.ts';
import { readInOrder } from './select-events.ts';

let scratch: ScratchDatabase;
let database: Database;
let events: EventStore;
let partitions: PartitionStore;

const now = Date.parse('2026-03-15T12:00:00.000Z');

function eventAt(occurredAt: string, ownerId: string): RecordedEvent {
  return {
    id: randomUUID(), eventType: 'share.created', occurredAt, ownerId, actor: { type: 'owner', id: ownerId },
    agentId: null, targetType: 'share', targetId: 'shr_a', shareId: 'shr_a', outcome: 'allowed', requestId: null, data: {},
  };
}

async function partitionNames(): Promise<string[]> {
  const rows = await database.run((sql) => sql<{ name: string }[]>`select inhrelid::regclass::text as name from pg_inherits where inhparent = 'events'::regclass order by 1`);
  return rows.map(({ name }) => name);
}

async function walk(ownerId: string, pageSize: number, between: () => Promise<unknown> = async () => undefined): Promise<string[]> {
  const filters = filtersOf(ownerId, { limit: pageSize });
  const ids: string[] = [];
  for (let rows = await events.listEvents(filters, undefined, pageSize); rows.length > 0; rows = await events.listEvents(filters, rows.at(-1)!.position, pageSize)) {
    ids.push(...rows.map((row) => row.event.id));
    await between();
  }
  return ids;
}

describe('partitions of the audit record', () => {
  beforeAll(async () => {
    scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url), readInOrder);
    database = scratch.database;
    events = openEventStore(database, () => now);
    partitions = openPartitionStore(database);
  });

  afterAll(() => scratch.drop());

  test('replicas that make the same partitions at once make each once', async () => {
    const times = [monthAt(now, 0), monthAt(now, 1), '2026-05-31T23:59:59.999Z'];
    const made = await Promise.all(Array.from({ length: 8 }, () => partitions.makePartitions(times)));
    expect(made.reduce((sum, one) => sum + one)).toBe(3);
    expect(await partitionNames()).toEqual(['events_2026_03', 'events_2026_04', 'events_2026_05']);
    expect(await partitions.makePartitions(times)).toBe(0);
  });

  test('recorders that need the same absent partition at once all succeed', async () => {
    const ownerId = randomUUID();
    const late = Array.from({ length: 8 }, () => [eventAt('2020-02-29T23:59:59.999Z', ownerId), eventAt('2019-12-31T23:59:59.999Z', ownerId), eventAt('2020-01-01T00:00:00.000Z', ownerId)]);
    expect(await Promise.all(late.map((batch) => events.recordEvents(batch)))).toEqual(Array.from({ length: 8 }, () => 3));
    expect((await walk(ownerId, 5)).sort()).toEqual(late.flat().map(({ id }) => id).sort());
    expect(await partitionNames()).toEqual(expect.arrayContaining(['events_2019_12', 'events_2020_01', 'events_2020_02']));
  });

  test('no time is refused: long ago, far ahead, finer than a month\'s last millisecond', async () => {
    const ownerId = randomUUID();
    const odd = ['0001-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z', '2031-01-31T23:59:59.9999Z', '2032-01-01T00:30:00.000+02:00'].map((time) => eventAt(time, ownerId));
    expect(await events.recordEvents(odd)).toBe(odd.length);
    expect(await events.recordEvents(odd)).toBe(0);
    expect(await walk(ownerId, 2)).toEqual([2, 4, 3, 1, 0].map((index) => odd[index]!.id));
    expect(isRefusedForGood(Object.assign(new Error(), { code: '23514' })), 'what waits for its partition is not thrown away').toBe(false);
  });

  test('an event is recorded once in whichever partition it is', async () => {
    const ownerId = randomUUID();
    const batch = Array.from({ length: 36 }, (_, months) => eventAt(monthAt(now, -months), ownerId));
    const added = await Promise.all(Array.from({ length: 6 }, () => events.recordEvents(batch)));
    expect(added.reduce((sum, one) => sum + one)).toBe(36);
    expect(await events.recordEvents([...batch].reverse())).toBe(0);
    expect(await walk(ownerId, 7)).toEqual(batch.map(({ id }) => id));
  });

  test('a walk across borders of partitions has no gap and no repeat while others write', async () => {
    const ownerId = randomUUID();
    // Around the turn of each month, so that pages end on both sides of it.
    const at = (n: number) => new Date(Date.parse(monthAt(now, -(n % 5))) + (n % 3) - 1).toISOString();
    const there = Array.from({ length: 400 }, (_, n) => eventAt(at(n), ownerId));
    await events.recordEvents(there);
    let arriving = 0;
    // Some of them need partitions that are not there yet.
    const arrive = () => events.recordEvents([eventAt(at(arriving), ownerId), eventAt(monthAt(now, 6 + arriving), ownerId), eventAt(monthAt(now, -60 - arriving++), ownerId)]);
    let pages = 0;
    const seen = await walk(ownerId, 13, async () => { if (pages++ < 30) await arrive(); });
    expect(new Set(seen).size, 'repeated').toBe(seen.length);
    const met = new Set(seen);
    expect(there.filter(({ id }) => !met.has(id)), 'gaps').toEqual([]);
  });

  test('from and to choose the same events on both sides of a border', async () => {
    const ownerId = randomUUID();
    const border = monthAt(now, -8);
    const [before, on] = [eventAt(new Date(Date.parse(border) - 1).toISOString(), ownerId), eventAt(border, ownerId)];
    await events.recordEvents([before, on]);
    const ids = async (query: { from?: string; to?: string }) => (await events.listEvents(filtersOf(ownerId, { limit: 5, ...query }), undefined, 5)).map((row) => row.event.id);
    expect(await ids({ from: border })).toEqual([on.id]);
    expect(await ids({ to: border })).toEqual([before.id]);
    expect(await ids({ from: monthAt(now, -9), to: monthAt(now, -7) })).toEqual([on.id, before.id]);
  });

  test('what is past its retention goes whole, and the rest stays; a late event after that is taken again', async () => {
    const ownerId = randomUUID();
    const [old, kept] = [eventAt('2018-06-30T23:59:59.999Z', ownerId), eventAt('2018-07-01T00:00:00.000Z', ownerId)];
    await events.recordEvents([old, kept]);
    expect(await partitions.dropPartitions('2018-06-30T23:59:59.999Z')).not.toContain('events_2018_06');
    const dropped = await Promise.all([1, 2, 3].map(() => partitions.dropPartitions('2018-07-01T00:00:00.000Z')));
    expect(dropped.flat().filter((name) => name === 'events_2018_06')).toHaveLength(1);
    expect(await walk(ownerId, 5)).toEqual([kept.id]);
    expect(await events.recordEvents([old, kept])).toBe(1);
    expect(await walk(ownerId, 5)).toEqual([kept.id, old.id]);
  });

  test('keeping makes the coming months, drops what is past its retention, and with 0 days drops nothing', async () => {
    const ownerId = randomUUID();
    await events.recordEvents([eventAt('2025-01-31T00:00:00.000Z', ownerId), eventAt('2025-02-28T00:00:00.000Z', ownerId)]);
    const keep = (retentionDays: number) => keepPartitions({ store: partitions, clock: () => now, log: pino({ level: 'silent' }), retentionDays });
    await keep(0);
    expect(await partitionNames()).toEqual(expect.arrayContaining(['events_2025_01', 'events_2025_02', 'events_2026_03', 'events_2026_04', 'events_2026_05']));
    // 400 days before the middle of March 2026 is the 8th of February 2025.
    await Promise.all([keep(400), keep(400)]);
    const names = await partitionNames();
    expect(names).not.toContain('events_2025_01');
    expect(names).toContain('events_2025_02');
    expect(await walk(ownerId, 5)).toHaveLength(1);
  });

  test('nobody who records or reads fails while partitions come and go', async () => {
    const ownerId = randomUUID();
    let going = true;
    // A partition may be dropped each time between making and using it; then the recorder's next attempt comes. Any other failure is one.
    const recordAtLast = async (batch: RecordedEvent[]): Promise<void> => {
      await events.recordEvents(batch).catch((error: unknown) => {
        if (!(error instanceof Failure) || error.code !== 'service_unavailable') throw error;
        return recordAtLast(batch);
      });
    };
    const recorders = Array.from({ length: 3 }, async (_, n) => {
      for (let round = 0; going; round += 1) await recordAtLast([eventAt(`2017-0${1 + (round % 9)}-1${n}T00:00:00.000Z`, ownerId), eventAt(monthAt(now, 0), ownerId)]);
    });
    const reader = (async () => { while (going) await events.listEvents(filtersOf(ownerId, { limit: 50 }), undefined, 50); })();
    for (let round = 0; round < 15; round += 1) await partitions.dropPartitions('2018-01-01T00:00:00.000Z').catch(() => undefined);
    going = false;
    await expect(Promise.all([...recorders, reader])).resolves.toBeDefined();
  });
});
