/** Limits as settings, and the networks that addresses stand for. */
import { expect, test } from 'vitest';
import { networkOf, readRateLimit } from './rate-limit.ts';

test.each([
  ['600/60', { limit: 600, window: 60 }],
  ['1/86400', { limit: 1, window: 86_400 }],
  ['0/60', undefined], ['600/0', undefined], ['600', undefined], ['600/60/1', undefined], ['-1/60', undefined], ['1e3/60', undefined], ['1/86401', undefined], ['999999999/60', undefined],
])('%s', (text, limit) => {
  expect(readRateLimit(text)).toEqual(limit);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('%s is of %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
