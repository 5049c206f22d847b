import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isAllowedAddress, isSameAddress, parseRange, type AddressSettings, type Range } from './address-rules.ts';

const none: AddressSettings = { allow: [], deny: [] };
const settings = (allow: string[], deny: string[] = []): AddressSettings => ({ allow: allow.map((text) => parseRange(text)!), deny: deny.map((text) => parseRange(text)!) });

/** First and last address of each range that is not the public internet, by arithmetic of the tests' own. */
const blockedV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8], ['10.0.0.0', 8], ['100.64.0.0', 10], ['127.0.0.0', 8], ['169.254.0.0', 16], ['172.16.0.0', 12], ['192.0.0.0', 24], ['192.0.2.0', 24], ['192.88.99.0', 24],
  ['192.168.0.0', 16], ['198.18.0.0', 15], ['198.51.100.0', 24], ['203.0.113.0', 24], ['224.0.0.0', 4], ['240.0.0.0', 4], ['168.63.129.16', 32],
];
const toNumber = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
const toText = (number: number) => [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
const isBlockedV4 = (number: number) => blockedV4.some(([first, bits]) => number >= toNumber(first) && number < toNumber(first) + 2 ** (32 - bits));
/** Ranges that the library takes for special and the list does not name. */
const alsoSpecial = ['192.31.196.', '192.52.193.', '192.175.48.'];

const blockedV6 = [
  '::', '::1', '::127.0.0.1', '::ffff:8.8.8.8', '::ffff:127.0.0.1', '64:ff9b::808:808', '64:ff9b:1::1', '100::1', '2001::1', '2001:0:7f00:1::', '2001:1ff::1', '2001:db8::1', '2002:7f00:1::', '2002:808:808::1', '3fff:fff::1', '5f00::1',
  'fc00::1', 'fd00:ec2::254', 'fe80::1', 'febf::1', 'fec0::1', 'ff02::1', '1::1', '4000::1', '8000::1', 'e000::1', 'fe80::1%eth0', '2606:4700::1%1',
];
const publicV6 = ['2606:4700:4700::1111', '2001:4860:4860::8888', '2001:200::1', '2a00:1450::1', '2003::1', '2400::1', '3ffe::1'];

describe('public addresses', () => {
  test('every IPv4 address is blocked exactly when a range names it', () => {
    fc.assert(fc.property(fc.nat({ max: 2 ** 32 - 1 }), (number) => {
      const text = toText(number);
      fc.pre(!alsoSpecial.some((start) => text.startsWith(start)));
      expect([text, isAllowedAddress(text, none)]).toEqual([text, !isBlockedV4(number)]);
    }), { numRuns: 5_000 });
  });

  test.each(blockedV4)('%s/%i is blocked from its first to its last address, and not beside them', (first, bits) => {
    const [start, end] = [toNumber(first), toNumber(first) + 2 ** (32 - bits) - 1];
    for (const inside of [start, end]) expect(isAllowedAddress(toText(inside), none)).toBe(false);
    for (const outside of [start - 1, end + 1].filter((one) => one >= 0 && one < 2 ** 32)) expect(isAllowedAddress(toText(outside), none)).toBe(!isBlockedV4(outside));
  });

  test.each(blockedV6)('%s is blocked', (address) => {
    expect(isAllowedAddress(address, none)).toBe(false);
  });

  test.each(publicV6)('%s is allowed', (address) => {
    expect(isAllowedAddress(address, none)).toBe(true);
  });

  test('no IPv6 address outside of 2000::/3 is allowed, and none that carries an IPv4 address in it', () => {
    fc.assert(fc.property(fc.array(fc.nat({ max: 65_535 }), { minLength: 8, maxLength: 8 }), (groups) => {
      const text = groups.map((group) => group.toString(16)).join(':');
      if (groups[0]! >> 13 !== 1) expect(isAllowedAddress(text, none)).toBe(false);
      expect(isAllowedAddress(['2002', ...text.split(':').slice(1)].join(':'), none)).toBe(false);
    }));
  });

  test.each(['', 'localhost', '127.1', '0x7f.0.0.1', '2130706433', '010.0.0.1', '8.8.8', '8.8.8.8.', ' 8.8.8.8', '8.8.8.8/32', '[2606:4700::1]', '8.8.8.256', '::g', 'ipv6'])('%j is no address, and not allowed', (text) => {
    expect(isAllowedAddress(text, settings(['0.0.0.0/0', '::/0']))).toBe(false);
  });
});

describe('ranges that a deployment names', () => {
  test('an allowed one is allowed to its ends, and a denied one is denied though it is public or allowed', () => {
    const own = settings(['10.1.0.0/16', 'fd00::/8'], ['10.1.2.0/24', '8.8.8.8', '2606:4700::/32']);
    for (const address of ['10.1.0.0', '10.1.255.255', 'fd12::1', '1.1.1.1']) expect([address, isAllowedAddress(address, own)]).toEqual([address, true]);
    for (const address of ['10.0.255.255', '10.2.0.0', '10.1.2.3', '8.8.8.8', '2606:4700::1', 'fe80::1', '::ffff:10.1.0.1', '127.0.0.1']) expect([address, isAllowedAddress(address, own)]).toEqual([address, false]);
  });

  test.each(['10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', '10/8', 'all', '', '/8', '10.0.0.0/1e1'])('%j is no range', (text) => {
    expect(parseRange(text)).toBeUndefined();
  });

  test('an address alone is a range of one', () => {
    const [, bits] = parseRange('::1') as Range;
    expect([bits, parseRange('10.0.0.1')![1]]).toEqual([128, 32]);
  });
});

test('an address is the same however it is written', () => {
  expect(isSameAddress('2606:4700::1', '2606:4700:0:0:0:0:0:1')).toBe(true);
  expect(isSameAddress('8.8.8.8', '::ffff:8.8.8.8')).toBe(false);
  expect(isSameAddress('', '')).toBe(false);
});
