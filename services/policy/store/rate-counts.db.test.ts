/** Counting requests against a real PostgreSQL: never more than the limit, and no second burst where a window ends. */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { roomOf } from '../domain/rate-window.ts';
import { rateCountsStore } from './rate-counts.ts';

let scratch: ScratchDatabase;
let store: ReturnType<typeof rateCountsStore>;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  store = rateCountsStore(scratch.database);
});
afterAll(() => scratch.drop());

const sum = (leases: readonly { granted: number }[]) => leases.reduce((total, { granted }) => total + granted, 0);

test('100 leases at once grant just the limit, and the last ones what is left', async () => {
  const bucket = randomUUID();
  const leases = await Promise.all(Array.from({ length: 100 }, () => store.leaseRequests({ bucket, limit: 500, window: 60, wanted: 7 })));
  expect(sum(leases)).toBe(500);
  expect(leases.some(({ granted }) => granted === 500 % 7)).toBe(true);
  expect(Math.max(...leases.map(({ used }) => used))).toBe(500);
});

test('a wish beyond the limit is granted up to it', async () => {
  expect((await store.leaseRequests({ bucket: randomUUID(), limit: 5, window: 60, wanted: 50 })).granted).toBe(5);
});

test('the window before counts by what of it still lies within a window’s length', async () => {
  const bucket = randomUUID();
  const limits = { limit: 1_000, window: 2 };
  const all = { ...limits, bucket, wanted: 1_000 };
  const first = await store.leaseRequests(all);
  expect(first).toMatchObject({ granted: 1_000, used: 1_000, previous: 0, elapsed: 0 });
  await setTimeout(2_050);
  const border = await store.leaseRequests(all);
  expect(border.previous).toBe(1_000);
  expect(border.granted).toBeGreaterThan(0);
  expect(border.granted).toBe(Math.ceil((border.elapsed / 2) * 1_000 - 1e-6));
  await setTimeout(1_000);
  const middle = await store.leaseRequests(all);
  expect(middle.used).toBe(Math.ceil((middle.elapsed / 2) * 1_000 - 1e-6));
  // The statement and the rule agree.
  expect(roomOf(middle, limits)).toBe(0);
  await setTimeout(4_050);
  expect(await store.leaseRequests(all)).toMatchObject({ granted: 1_000, previous: 0, elapsed: 0 });
});

test('callers who are gone are forgotten, and no others', async () => {
  const [gone, present] = [randomUUID(), randomUUID()];
  await store.leaseRequests({ bucket: gone, limit: 5, window: 1, wanted: 5 });
  await store.leaseRequests({ bucket: present, limit: 5, window: 60, wanted: 5 });
  await setTimeout(2_050);
  await store.purgeRateCounts();
  const rows = await scratch.database.run((sql) => sql<{ bucket: string }[]>`select bucket from rate_counts where bucket in ${sql([gone, present])}`);
  expect(rows.map(({ bucket }) => bucket)).toEqual([present]);
});
