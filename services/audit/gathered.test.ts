/** Nothing that a source gives is lost on its way into batches. */
import { expect, test } from 'vitest';
import { gathered } from './gathered.ts';

async function* counting(to: number, end?: Error) {
  for (let n = 0; n < to; n += 1) yield n;
  if (end) throw end;
}

test('what came during one batch is the next batch', async () => {
  const batches: number[][] = [];
  for await (const batch of gathered(counting(100))) batches.push(batch);
  expect(batches.flat()).toEqual(Array.from({ length: 100 }, (_, n) => n));
  expect(batches.length).toBeLessThan(10);
});

test('an empty source gives no batch', async () => {
  for await (const batch of gathered(counting(0))) expect.unreachable(String(batch));
});

test('a failing source gives what it had, then fails', async () => {
  const seen: number[] = [];
  const read = async () => { for await (const batch of gathered(counting(3, new Error('broken')))) seen.push(...batch); };
  await expect(read()).rejects.toThrow('broken');
  expect(seen).toEqual([0, 1, 2]);
});
