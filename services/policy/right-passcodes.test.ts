import { expect, test } from 'vitest';
import { makeRightPasscodes } from './right-passcodes.ts';

test('only the very passcode of the very share is remembered, for a minute', () => {
  let now = 0;
  const right = makeRightPasscodes(() => now);
  expect(right.has('hash', 'open sesame')).toBe(false);
  right.note('hash', 'open sesame');
  expect(right.has('hash', 'open sesame')).toBe(true);
  expect(right.has('hash', 'open sesam')).toBe(false);
  expect(right.has('other', 'open sesame')).toBe(false);
  now = 59_999;
  expect(right.has('hash', 'open sesame')).toBe(true);
  now = 60_000;
  expect(right.has('hash', 'open sesame')).toBe(false);
});

test('of many the oldest are forgotten', () => {
  const right = makeRightPasscodes(() => 0);
  for (let n = 0; n < 1_500; n += 1) right.note(`hash ${n}`, 'open sesame');
  expect([right.has('hash 499', 'open sesame'), right.has('hash 500', 'open sesame'), right.has('hash 1499', 'open sesame')]).toEqual([false, true, true]);
});
