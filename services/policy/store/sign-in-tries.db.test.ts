/** Tries at signing in against a real PostgreSQL: never more than may fail, by account and by address. */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { signInTriesStore, type ClaimedSignIn, type SignInLimits } from './sign-in-tries.ts';

let scratch: ScratchDatabase;
let store: ReturnType<typeof signInTriesStore>;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  store = signInTriesStore(scratch.database);
});
afterAll(() => scratch.drop());

const limits = (account: number, address: number, window = 600): SignInLimits => ({ account: { tries: account, window }, address: { tries: address, window } });
const isClaimed = (claimed: ClaimedSignIn) => 'accountSince' in claimed;
const trier = () => ({ email: `${randomUUID()}@example.com`, network: randomUUID() });
const claimMany = (count: number, make: () => { email: string; network: string }, limit: SignInLimits) =>
  Promise.all(Array.from({ length: count }, () => store.claimSignIn(make(), limit)));

test.each([1, 7])('of 50 tries at once at an account, from anywhere, exactly %i are let through', async (tries) => {
  const { email } = trier();
  const claimed = await claimMany(50, () => ({ email, network: randomUUID() }), limits(tries, 100));
  expect(claimed.filter(isClaimed)).toHaveLength(tries);
});

test.each([1, 7])('of 50 tries at once from an address, at any account, exactly %i are let through', async (tries) => {
  const { network } = trier();
  const claimed = await claimMany(50, () => ({ email: trier().email, network }), limits(100, tries));
  expect(claimed.filter(isClaimed)).toHaveLength(tries);
});

test('an account is the same however its e-mail is written', async () => {
  const one = trier();
  expect(isClaimed(await store.claimSignIn(one, limits(1, 100)))).toBe(true);
  expect(isClaimed(await store.claimSignIn({ ...one, email: one.email.toUpperCase() }, limits(1, 100)))).toBe(false);
});

test('what an address may not try any more is not counted against the account', async () => {
  const one = trier();
  await store.claimSignIn({ ...trier(), network: one.network }, limits(2, 1));
  for (let refused = 0; refused < 5; refused += 1) expect(isClaimed(await store.claimSignIn(one, limits(2, 1)))).toBe(false);
  for (let elsewhere = 0; elsewhere < 2; elsewhere += 1) expect(isClaimed(await store.claimSignIn({ ...one, network: randomUUID() }, limits(2, 1)))).toBe(true);
});

test.each([['account', limits(1, 100)], ['address', limits(100, 1)]])('a try refused by %s says when the window ends', async (_by, limit) => {
  const one = trier();
  await store.claimSignIn(one, limit);
  const refused = await store.claimSignIn(one, limit) as { retryAfter: number };
  expect(refused.retryAfter).toBeGreaterThan(590);
  expect(refused.retryAfter).toBeLessThanOrEqual(600);
});

test('a right try leaves the room that it took', async () => {
  const one = trier();
  for (let right = 0; right < 20; right += 1) {
    const claimed = await store.claimSignIn(one, limits(3, 3));
    if (!('accountSince' in claimed)) throw new Error('no room');
    await store.returnSignIn(one, claimed);
  }
  const claimed = await claimMany(10, () => one, limits(3, 3));
  expect(claimed.filter(isClaimed)).toHaveLength(3);
});

test('claims and returns of a crowd do not wait for each other for ever', async () => {
  const [network, emails] = [randomUUID(), [trier().email, trier().email]];
  const rounds = Array.from({ length: 100 }, async (_unused, index) => {
    const one = { email: emails[index % 2]!, network: index % 3 === 0 ? randomUUID() : network };
    const claimed = await store.claimSignIn(one, limits(1_000, 1_000));
    if ('accountSince' in claimed) await store.returnSignIn(one, claimed);
    return isClaimed(claimed);
  });
  expect((await Promise.all(rounds)).every(Boolean)).toBe(true);
});

test('a new window begins empty, and nothing is given back to it from the old one', async () => {
  const one = trier();
  const short = limits(2, 100, 1);
  const first = await store.claimSignIn(one, short);
  await store.claimSignIn(one, short);
  expect(isClaimed(await store.claimSignIn(one, short))).toBe(false);
  await setTimeout(1_100);
  expect(isClaimed(await store.claimSignIn(one, short))).toBe(true);
  await store.returnSignIn(one, first as { accountSince: string; addressSince: string });
  expect(isClaimed(await store.claimSignIn(one, short))).toBe(true);
  expect(isClaimed(await store.claimSignIn(one, short))).toBe(false);
});
