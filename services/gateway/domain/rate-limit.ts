/** A rate limit as a setting, and as the headers that tell it (IETF httpapi draft "RateLimit header fields for HTTP"). */
import type { RateClass } from '../../../shared/contract.ts';

/** So many requests within so many seconds. */
export interface RateLimit {
  readonly limit: number;
  readonly window: number;
}

/** Reads `600/60`: requests, and the seconds of their window. Answers undefined when it is not one. */
export function readRateLimit(text: string): RateLimit | undefined {
  const [, limit, window] = /^(\d{1,8})\/(\d{1,5})$/.exec(text) ?? [];
  if (!Number(limit) || !Number(window) || Number(window) > 86_400) return undefined;
  return { limit: Number(limit), window: Number(window) };
}

/** What one request found: whether it may pass, what is left of the limit, and when that changes. */
export interface RateVerdict {
  readonly passes: boolean;
  readonly left: number;
  /** Seconds until the window ends, or until the next request may pass. */
  readonly seconds: number;
}

export function policyHeader(name: RateClass, { limit, window }: RateLimit): string {
  return `"${name}";q=${limit};w=${window}`;
}

export function limitHeader(name: RateClass, { left, seconds }: RateVerdict): string {
  return `"${name}";r=${left};t=${seconds}`;
}

/** The network that an address stands for. Whoever has one IPv6 address has the whole /64 it lies in. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [bare] = address.toLowerCase().split('%', 1);
  const [, mapped] = /^(?:::ffff:|::)(\d+\.\d+\.\d+\.\d+)$/.exec(bare!) ?? [];
  if (mapped) return mapped;
  const [head, tail] = bare!.split('::') as [string, string | undefined];
  const first = head === '' ? [] : head.split(':');
  const last = !tail ? [] : tail.split(':');
  // An IPv4 tail is two groups long.
  const tailGroups = last.length + (last.at(-1)?.includes('.') ? 1 : 0);
  const groups = tail === undefined ? first : [...first, ...Array.from<string>({ length: Math.max(0, 8 - first.length - tailGroups) }).fill('0'), ...last];
  return `${groups.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`;
}
