/** Which URLs may be fetched at all, before any name is looked up; the same rules on every hop. */
import { fail, failField, type Failure } from '../../../shared/errors.ts';
import { headerText } from './header-text.ts';

/** A place to connect to, as a URL names it. */
export interface Source {
  readonly url: URL;
  readonly isSecure: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly isAddress: boolean;
  readonly port: number;
}

/**
 * From 1024 on, ports of services that trust their network: databases, caches, queues, orchestrators and their metrics, remote desktops, mail and chat. Below, 80 and 443 are
 * the web's and all others are somebody else's.
 */
const otherServices: ReadonlySet<number> = new Set([
  1080, 1433, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2379, 2380, 3260, 3306, 3389, 3659, 4045, 4190, 4222, 4369, 5060, 5061, 5432, 5433, 5672, 5900, 5984, 6000, 6222, 6379, 6443,
  6514, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 7000, 7687, 8125, 8222, 8300, 8301, 8500, 9042, 9092, 9100, 9200, 9300, 10250, 10255, 10256, 10259, 11211, 15672, 26257, 26379, 27017, 27018, 27019,
]);

export function isAllowedPort(port: number, denied: readonly number[]): boolean {
  const isUsual = port === 80 || port === 443 || (port >= 1_024 && port <= 65_535 && !otherServices.has(port));
  return isUsual && !denied.includes(port);
}

const isFourParts = (host: string) => /^\d+\.\d+\.\d+\.\d+$/.test(host);

/** The parser has made every way to write an address into one: `0x7f.1`, `2130706433` and full-width digits are 127.0.0.1 by now. */
function sourceOf(url: URL): Source {
  const isSecure = url.protocol === 'https:';
  const isBracketed = url.hostname.startsWith('[');
  const host = isBracketed ? url.hostname.slice(1, -1) : url.hostname;
  return { url, isSecure, host, isAddress: isBracketed || isFourParts(host), port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port) };
}

/**
 * Reads the URL of a request. What two parsers might read in two ways is refused: no backslash, space or control character,
 * both slashes, and no user name, which could pass for a host.
 * @throws invalid_request that names the field
 */
export function readSourceUrl(text: string): Source {
  // eslint-disable-next-line no-control-regex
  if (!text.isWellFormed() || /[\u0000-\u0020\u007f-\u00a0\\]/u.test(text)) throw failField('url', 'must not contain spaces, control characters or backslashes');
  if (!/^https?:\/\/[^/]/i.test(text)) throw failField('url', 'must begin with http:// or https:// and a host');
  const url = URL.parse(text);
  if (!url) throw failField('url', 'must be a URL');
  if (hasUserinfo(url) || authorityOf(text).includes('@')) throw failField('url', 'must not contain a user name or password');
  return sourceOf(url);
}

/**
 * Where a redirect leads.
 * @throws import_url_blocked for another scheme or a user name, import_upstream_failed for what is no URL
 */
export function readRedirect(from: URL, location: string | undefined): Source {
  const url = location === undefined ? null : URL.parse(headerText(location), from.href);
  if (!url) throw fail('import_upstream_failed', { detail: 'The server redirects without saying where to.' });
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw blocked('A redirect leads to an address that is neither http nor https.');
  if (hasUserinfo(url)) throw blocked('A redirect leads to an address with a user name or password.');
  return sourceOf(url);
}

export function blocked(detail: string): Failure {
  return fail('import_url_blocked', { detail });
}

const hasUserinfo = ({ username, password }: URL) => username !== '' || password !== '';
/** An empty user name leaves no trace in what was parsed. */
const authorityOf = (text: string) => /^\w+:\/\/([^/?#]*)/.exec(text)?.[1] ?? '';
