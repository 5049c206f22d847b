import { expect, test } from 'vitest';
import { makePermits } from './permits.ts';

test('no more permits are out than there are, and those that wait are served in their order', async () => {
  const permits = makePermits(2, 10_000);
  const [first, second] = [await permits.take(), await permits.take()];
  const order: string[] = [];
  const large = permits.take(5).then((release) => { order.push('large'); release(); });
  const small = permits.take().then(() => { order.push('small'); });
  first();
  first();
  await Promise.resolve();
  expect(order).toEqual([]);
  second();
  await Promise.all([large, small]);
  expect(order).toEqual(['large', 'small']);
});

test('whoever waits too long is told so', async () => {
  const permits = makePermits(1, 1);
  await permits.take();
  await expect(permits.take()).rejects.toMatchObject({ code: 'overloaded' });
});
