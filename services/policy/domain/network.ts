/** The network that an address counts as, where callers are limited by address. */

/** An IPv4 address is itself. Of an IPv6 address the first 64 bits count: whoever has one address there has them all. */
export function networkOf(address: string | undefined): string {
  const plain = (address ?? '').replace(/%.*$/, '').toLowerCase();
  const mapped = /^::ffff:([\d.]+)$/.exec(plain)?.[1];
  if (mapped) return mapped;
  return plain.includes(':') ? `${firstHalf(plain)}::/64` : plain.slice(0, 64);
}

function firstHalf(address: string): string {
  const [before = '', after] = address.replace(/[\d.]*\.[\d.]*$/, '0:0').split('::');
  const groups = (text: string | undefined) => (text ? text.split(':') : []);
  const [head, tail] = [groups(before), groups(after)];
  const filled = after === undefined ? head : [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return filled.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16)).join(':');
}
