import { expect, test } from 'vitest';
import { makeInterrupt } from './interrupt.ts';

test('waits end with their work, or with the reason, now and later', async () => {
  const { until, fire } = makeInterrupt();
  expect(await until(Promise.resolve(1))).toBe(1);
  await expect(until(Promise.reject(new Error('own')))).rejects.toThrow('own');
  const open = until(new Promise(() => undefined));
  fire(new Error('given up'));
  fire(new Error('again'));
  await expect(open).rejects.toThrow('given up');
  await expect(until(Promise.resolve(1))).rejects.toThrow('given up');
});
