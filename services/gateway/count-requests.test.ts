/** Counting with leases, by a clock of its own: what is asked of the counter, and what happens without it. */
import { expect, test } from 'vitest';
import { makeCount, type Lease, type TakeLease } from './count-requests.ts';

const limit = { limit: 100, window: 60 };

/** A counter of one window, and a clock that stands still until it is moved. */
function makeStand({ maxCallers = 1_000, own = limit } = {}) {
  const used = new Map<string, number>();
  const stand = {
    now: 1_000_000, endsAt: 1_060_000, asked: [] as number[], isAway: false,
    count: undefined as unknown as ReturnType<typeof makeCount>,
    async pass(bucket = 'one', times = 1) {
      const verdicts = await Promise.all(Array.from({ length: times }, () => stand.count(bucket)));
      return verdicts.filter(({ passes }) => passes).length;
    },
  };
  const takeLease: TakeLease = async ({ bucket, limit: most, wanted }): Promise<Lease> => {
    stand.asked.push(wanted);
    await Promise.resolve();
    if (stand.isAway) throw new Error('away');
    const before = used.get(bucket) ?? 0;
    const granted = Math.min(wanted, most - before);
    used.set(bucket, before + granted);
    return { granted, left: most - before - granted, endsInMs: stand.endsAt - stand.now, waitMs: before + granted < most ? 0 : stand.endsAt - stand.now };
  };
  stand.count = makeCount({ limit: own, takeLease, clock: () => stand.now, maxCallers });
  return Object.assign(stand, { used });
}

test('a lease is a twentieth of the limit, and with one in hand nothing is asked or awaited', async () => {
  const stand = makeStand();
  expect(await stand.count('one')).toEqual({ passes: true, left: 99, seconds: 60 });
  expect(stand.asked).toEqual([5]);
  for (const left of [98, 97, 96, 95]) expect(stand.count('one')).toEqual({ passes: true, left, seconds: 60 });
  expect(stand.count('one')).toBeInstanceOf(Promise);
});

test('of a crowd just the limit passes, and the counter is asked a few times', async () => {
  const stand = makeStand();
  expect(await stand.pass('one', 500)).toBe(100);
  expect(stand.asked.length).toBeLessThan(5);
  const asked = stand.asked.length;
  expect(stand.count('one')).toEqual({ passes: false, left: 0, seconds: 60 });
  expect(stand.asked).toHaveLength(asked);
});

test('callers do not share, and a refused one is asked for again when it may pass', async () => {
  const stand = makeStand();
  await stand.pass('one', 150);
  expect(await stand.pass('two')).toBe(1);
  stand.now = stand.endsAt;
  stand.endsAt += 60_000;
  stand.used.clear();
  expect(await stand.pass('one')).toBe(1);
});

test('a lease ends with its window, whatever is left of it', async () => {
  const stand = makeStand();
  await stand.pass();
  stand.now = stand.endsAt;
  stand.endsAt += 60_000;
  expect(stand.count('one')).toBeInstanceOf(Promise);
  expect(stand.asked).toHaveLength(2);
});

test('without the counter a gateway grants what the limit allows in ten seconds, then refuses, then goes on', async () => {
  const stand = makeStand({ own: { limit: 600, window: 60 } });
  stand.isAway = true;
  expect(await stand.pass('one', 150)).toBe(100);
  expect(stand.count('one')).toEqual({ passes: false, left: 0, seconds: 10 });
  stand.now += 10_000;
  expect(await stand.pass('one', 150)).toBe(100);
  stand.now += 10_000;
  stand.isAway = false;
  stand.endsAt = stand.now + 60_000;
  expect(await stand.pass('one', 1_000)).toBe(600);
});

test('a counter that does not answer is left alone for a second', async () => {
  const stand = makeStand();
  stand.isAway = true;
  for (let caller = 0; caller < 50; caller += 1) await stand.pass(`caller ${caller}`);
  expect(stand.asked).toHaveLength(1);
  stand.now += 1_000;
  await stand.pass('another');
  expect(stand.asked).toHaveLength(2);
});

test('a small limit in a long window is not widened without the counter', async () => {
  const stand = makeStand({ own: { limit: 1, window: 3_600 } });
  stand.isAway = true;
  expect(await stand.pass('one', 5)).toBe(1);
  stand.now += 600_000;
  expect(await stand.pass('one', 5)).toBe(0);
});

test('a caller that is forgotten never gets more than the limit', async () => {
  const stand = makeStand({ maxCallers: 10 });
  let passed = 0;
  for (let round = 0; round < 200; round += 1) {
    passed += await stand.pass('one');
    for (let other = 0; other < 20; other += 1) await stand.pass(`${round} ${other}`);
  }
  expect(passed).toBeLessThanOrEqual(100);
});
