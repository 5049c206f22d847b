/** Which addresses may be connected to: the public internet, and what the deployment names (interface chapter: /api/import-url fields). */
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Range = [Address, number];

/** `10.0.0.0/8`, `fd00::/8`, or an address alone. Undefined for anything else. */
export function parseRange(text: string): Range | undefined {
  const [address, bits, rest] = text.split('/') as [string, string?, string?];
  const parsed = parseAddress(address);
  if (!parsed || rest !== undefined || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return undefined;
  const most = parsed.kind() === 'ipv4' ? 32 : 128;
  const length = bits === undefined ? most : Number(bits);
  return length <= most ? [parsed, length] : undefined;
}

const ranges = (...texts: string[]): Range[] => texts.map((text) => parseRange(text)!);

/**
 * Nothing in these is the public internet: this host, private and shared networks, link-local (where clouds answer with credentials), documentation, benchmarks,
 * multicast, reserved, and a cloud's address that only looks public.
 */
const neverPublic = ranges(
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16',
  '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '168.63.129.16',
  // Of IPv6 only 2000::/3 is given out at all; these parts of it carry other networks, or nothing. The rest is named for whoever reads the list.
  '::/96', '::ffff:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8',
);
const [globalUnicast] = ranges('2000::/3') as [Range];

/** What a deployment adds. */
export interface AddressSettings {
  /** In-house ranges that may be imported from. */
  readonly allow: readonly Range[];
  /** Ranges that may not, even where they are public or allowed. */
  readonly deny: readonly Range[];
}

function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return text.includes(':') && ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : undefined;
}

const isIn = (address: Address) => (range: Range) => range[0].kind() === address.kind() && address.match(range);

/** Two opinions: the list above, and the library's. Whatever either takes for special is not public. */
function isPublic(address: Address): boolean {
  const isGlobal = address.kind() === 'ipv4' || isIn(address)(globalUnicast);
  return isGlobal && !neverPublic.some(isIn(address)) && address.range() === 'unicast';
}

/** Whether an address, written in the one usual way, may be connected to. What is no such address may not; nor may one with a zone. */
export function isAllowedAddress(text: string, { allow, deny }: AddressSettings): boolean {
  const address = parseAddress(text);
  if (!address || text.includes('%') || deny.some(isIn(address))) return false;
  return isPublic(address) || allow.some(isIn(address));
}

/** Whether two texts are the same address. */
export function isSameAddress(one: string, other: string): boolean {
  const [first, second] = [parseAddress(one), parseAddress(other)];
  return first !== undefined && second !== undefined && first.toNormalizedString() === second.toNormalizedString();
}
