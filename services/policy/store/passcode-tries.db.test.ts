/** Tries at passcodes against a real PostgreSQL: never more than may fail, and only those that failed. */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { passcodeTriesStore, type ClaimedTry } from './passcode-tries.ts';

let scratch: ScratchDatabase;
let store: ReturnType<typeof passcodeTriesStore>;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  store = passcodeTriesStore(scratch.database);
});
afterAll(() => scratch.drop());

const limit = { tries: 7, window: 600 };
const isClaimed = (claimed: ClaimedTry) => 'since' in claimed;

test.each([1, 7])('of 50 tries at once exactly %i are let through', async (tries) => {
  const shareId = newId('share');
  const claimed = await Promise.all(Array.from({ length: 50 }, () => store.claimTry(shareId, { ...limit, tries })));
  expect(claimed.filter(isClaimed)).toHaveLength(tries);
});

test('a refused try says when the window ends', async () => {
  const shareId = newId('share');
  await store.claimTry(shareId, { ...limit, tries: 1 });
  const refused = await store.claimTry(shareId, { ...limit, tries: 1 }) as { retryAfter: number };
  expect(refused.retryAfter).toBeGreaterThan(590);
  expect(refused.retryAfter).toBeLessThanOrEqual(600);
});

test('a right try leaves the room that it took, and shares do not share their room', async () => {
  const shareId = newId('share');
  for (let right = 0; right < 20; right += 1) {
    const claimed = await store.claimTry(shareId, limit);
    if (!('since' in claimed)) throw new Error('no room');
    await store.returnTry(shareId, claimed);
  }
  for (let wrong = 0; wrong < 7; wrong += 1) expect(isClaimed(await store.claimTry(shareId, limit))).toBe(true);
  expect(isClaimed(await store.claimTry(shareId, limit))).toBe(false);
  expect(isClaimed(await store.claimTry(newId('share'), limit))).toBe(true);
});

test('a new window begins empty, and nothing is given back to it from the old one', async () => {
  const shareId = newId('share');
  const short = { tries: 2, window: 1 };
  const first = await store.claimTry(shareId, short);
  await store.claimTry(shareId, short);
  expect(isClaimed(await store.claimTry(shareId, short))).toBe(false);
  await setTimeout(1_100);
  expect(isClaimed(await store.claimTry(shareId, short))).toBe(true);
  await store.returnTry(shareId, first as { since: string });
  expect(isClaimed(await store.claimTry(shareId, short))).toBe(true);
  expect(isClaimed(await store.claimTry(shareId, short))).toBe(false);
});
