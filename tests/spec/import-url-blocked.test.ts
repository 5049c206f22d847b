/** POST /api/import-url reaches nothing private: canaries on every private address of this machine accept no connection (interface chapter: Transfer plan and creation). */
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDnsServer, type DnsServer } from '../support/dns-server.ts';
import { sharedExchange } from '../support/exchange.ts';
import { importer, startImporting } from '../support/importing.ts';
import type { OwnStack } from '../support/own-stack.ts';
import { expectRefusal } from '../support/refusals.ts';
import { allowPublic, behind, publicAddress, startCanaries, startSourceServer, type Canaries, type SourceServer } from '../support/source-server.ts';

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
const own = (): string[] => Object.values(networkInterfaces()).flatMap((all) => (all ?? []).filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address));

/** Every way to write this machine's loopback, and a literal of every range that is not the public internet. */
const hosts = [
  '127.0.0.1', '2130706433', '017700000001', '0x7f.1', '0x7f000001', '127.1', '127.0.1', '0177.0.0.1', '127.0.0.1.', '①②⑦.⓪.⓪.①', '１２７.０.０.１', '127。0。0。1', '127.0.0.2', '127.7.7.6', '0', '0.0.0.0', '0.0.0.1',
  '[::]', '[::1]', '[0:0:0:0:0:0:0:1]', '[::127.0.0.1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:127.7.7.7]', '[::ffff:0:127.0.0.1]', '[64:ff9b::127.0.0.1]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]', '[2001::7f00:1]', '[2001:db8::1]', '[3fff::1]',
  '[fc00::1]', '[fd00:ec2::254]', '[fe80::1]', '[fec0::1]', '[ff02::1]', '[100::1]', '[5f00::1]', '[4000::1]',
  '10.0.0.1', '100.64.0.1', '100.100.100.200', '168.63.129.16', '169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1', '192.168.0.1', '198.18.0.1', '198.51.100.1', '203.0.113.1',
  '224.0.0.1', '240.0.0.1', '255.255.255.255', ...own(),
];

const loopbacks = ['127.0.0.1', '127.0.0.2', '127.7.7.6', ...own(), ...(hasIpv6 ? ['::1'] : [])];
const publicPorts = [4222, 5432, 6379, 8222].map((port) => [publicAddress, port] as const);

/** Names with one, several and changing addresses. The first of a changing one is good. */
const changing = (asked: number) => (asked === 0 ? [publicAddress] : ['127.0.0.1']);
const zone = {
  'good.test': [publicAddress],
  'localhost': ['127.0.0.1'],
  'a.test': ['127.0.0.1'],
  'metadata.test': ['169.254.169.254'],
  'aaaa.test': ['::1'],
  'mapped.test': ['::ffff:7f00:1'],
  'nat64.test': ['64:ff9b::7f00:1'],
  'mixed-a.test': [publicAddress, '127.0.0.1'],
  'mixed-aaaa.test': [publicAddress, '::1'],
  'many.test': [...Array.from({ length: 9 }, () => publicAddress), '10.0.0.1'],
  'rebinding.test': changing,
  'rebinding-twice.test': changing,
  'refused.test': 'refused',
  'silent.test': 'silence',
  'empty.test': [],
} as const;
const blockedNames = ['localhost', 'LOCALHOST.', 'a.test', 'metadata.test', 'aaaa.test', 'mapped.test', 'nat64.test', 'mixed-a.test', 'mixed-aaaa.test', 'many.test', 'A.TEST'];

let dns: DnsServer;
let stack: OwnStack;
let source: SourceServer;
let canaries: Canaries;
let send: ReturnType<typeof importer>;
beforeAll(async () => {
  [dns, source] = await Promise.all([startDnsServer(zone), startSourceServer()]);
  canaries = await startCanaries(loopbacks, [...publicPorts, ['127.0.0.1', source.port]]);
  const proxy = `http://127.0.0.1:${canaries.port}`;
  // Variables that ask clients for a proxy, or not to look at certificates: no deployment's wish, only its environment.
  const env = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, http_proxy: proxy, https_proxy: proxy, NO_PROXY: '', NODE_USE_ENV_PROXY: '1' };
  stack = await startImporting(dns.address, { ...env, IMPORT_DENY_PORTS: '9999', IMPORT_DENY_RANGES: '127.7.7.8', IMPORT_ALLOW_RANGES: `${allowPublic.IMPORT_ALLOW_RANGES},127.7.7.8/32` });
  send = importer(stack.exchange);
});
afterAll(async () => {
  source.close();
  dns.close();
  canaries.close();
  await stack.remove();
});

const expectBlocked = async (url: string) => {
  const answer = await send(url);
  expectRefusal(answer, 400, 'import_url_blocked');
  expect(answer.json.detail).not.toMatch(/\d+\.\d+\.\d+\.\d+|::|secret|refused/);
  expect(canaries.accepted).toEqual([]);
};

describe('private addresses', () => {
  test.each(hosts)('%s is blocked, directly and behind one to five redirects', async (host) => {
    const url = `http://${host}:${canaries.port}/`;
    await expectBlocked(url);
    for (const redirects of [1, 2, 3, 4, 5]) await expectBlocked(source.url(behind(redirects, url)));
  });

  test.each(blockedNames)('the name %s is blocked, directly and behind one to five redirects', async (name) => {
    const url = `http://${name}:${canaries.port}/`;
    await expectBlocked(url);
    for (const redirects of [1, 2, 3, 4, 5]) await expectBlocked(source.url(behind(redirects, url)));
  });

  test('a name is looked up once a hop: what it becomes after the check does not matter', async () => {
    expect((await send(`http://rebinding.test:${source.port}/text`)).status).toBe(201);
    expect(dns.asked('rebinding.test')).toBe(2);
    await expectBlocked(`http://rebinding.test:${source.port}/text`);
  });

  test('a name that changes between two hops is checked on both', async () => {
    await expectBlocked(`http://rebinding-twice.test:${source.port}${behind(1, `http://rebinding-twice.test:${canaries.port}/`)}`);
    expect(source.requests.at(-1)!.headers.host).toContain('rebinding-twice.test');
  });

  test.each(['localhost', 'LOCALHOST'])('%s is blocked where the system resolves it', async (name) => {
    expectRefusal(await importer(sharedExchange())(`http://${name}:${canaries.port}/`), 400, 'import_url_blocked');
    expect(canaries.accepted).toEqual([]);
  });

  test('a range that is named is imported from, however its address is written, and a denied one is not', async () => {
    for (const host of [publicAddress, '2131166983', '0x7f070707', 'good.test', 'GOOD.test.']) expect([host, (await send(`http://${host}:${source.port}/text`)).status]).toEqual([host, 201]);
    await expectBlocked(`http://127.7.7.8:${source.port}/text`);
  });
});

describe('ports', () => {
  test.each([0, 1, 21, 22, 23, 25, 79, 81, 444, 1023, 2375, 3306, 4222, 5432, 6379, 6443, 8222, 9200, 9999, 10250, 11211, 27017])('port %i is blocked, directly and behind a redirect', async (port) => {
    await expectBlocked(`http://${publicAddress}:${port}/`);
    await expectBlocked(source.url(behind(1, `http://good.test:${port}/`)));
  });

  test('a port that is none answers invalid_request', async () => {
    expectRefusal(await send(`http://${publicAddress}:65536/`), 400, 'invalid_request', 'url');
    expectRefusal(await send(source.url(behind(1, `http://${publicAddress}:65536/`))), 502, 'import_upstream_failed');
  });
});

describe('what is no URL to import', () => {
  const at = () => `127.0.0.1:${canaries.port}`;
  test.each<[string, () => string]>([
    ['a backslash', () => `http://good.test\\@${at()}/`],
    ['a backslash behind a host', () => `http://${at()}\\@good.test/`],
    ['backslashes for slashes', () => `http:\\\\${at()}/`],
    ['a percent-encoded NUL in the host', () => `http://good.test%00.${at()}/`],
    ['a user name', () => `http://user@good.test:${source.port}/text`],
    ['a user name and a password', () => `http://user:word@good.test:${source.port}/text`],
    ['an empty user name', () => `http://@good.test:${source.port}/text`],
    ['two at signs', () => `http://a@b@${at()}/`],
    ['no slashes', () => `http:${at()}/`],
    ['one slash', () => `http:/${at()}/`],
    ['three slashes', () => `http:///${at()}/`],
    ['no scheme', () => `//${at()}/`],
    ['a path', () => '/etc/passwd'],
    ['no host', () => 'http://'],
    ['a space', () => `http://good.test /`],
    ['a line break', () => `http://good.test/\r\nHost: other`],
    ['a tab in the scheme', () => `ht\ttp://${at()}/`],
    ['a NUL', () => `http://good.test/\0`],
    ['a zone', () => `http://[fe80::1%25lo]:${canaries.port}/`],
    ['a lone surrogate', () => 'http://good.test/\ud800'],
    ['too many characters', () => `http://good.test/${'a'.repeat(8_192)}`],
    ['nothing', () => ''],
    ...['file:///etc/passwd', 'ftp://good.test/', 'gopher://good.test/', 'data:text/plain,hello', 'javascript:1', 'blob:http://good.test/1', 'ws://good.test/', 'unix:/run/docker.sock', 'jar:http://good.test!/'].map((url): [string, () => string] => [url, () => url]),
  ])('%s answers invalid_request', async (_what, url) => {
    expectRefusal(await send(url()), 400, 'invalid_request', 'url');
    expect(canaries.accepted).toEqual([]);
  });

  test('what stands behind a # is no host', async () => {
    await expectBlocked(`http://127.0.0.1:${canaries.port}#@good.test:${source.port}/text`);
    expect((await send(`http://good.test:${source.port}/text#@127.0.0.1:${canaries.port}/`)).status).toBe(201);
  });

  test.each([
    'ftp://good.test/', 'file:///etc/passwd', 'gopher://127.0.0.1:4222/', 'data:text/plain,hello', 'javascript:alert(1)', 'http://user:word@good.test/', 'https://user@good.test/', 'http://a@b@127.0.0.1/',
  ])('a redirect to %s is blocked', async (location) => {
    await expectBlocked(source.url(behind(1, location)));
  });

  test.each(['http://', 'http://[::1', 'https://good.test:99999/', 'http://exa mple/'])('a redirect to %j answers import_upstream_failed', async (location) => {
    expectRefusal(await send(source.url(behind(1, location))), 502, 'import_upstream_failed');
  });

  test('a redirect with backslashes or without a scheme is checked as what it means', async () => {
    await expectBlocked(source.url(behind(1, `\\\\127.0.0.1:${canaries.port}\\`)));
    await expectBlocked(source.url(behind(1, `//127.0.0.1:${canaries.port}/`)));
    expect((await send(source.url(behind(1, '../../text')))).status).toBe(201);
  });
});

describe('names without an answer', () => {
  test.each(['absent.test', 'refused.test', 'empty.test'])('%s answers import_upstream_failed', async (name) => {
    expectRefusal(await send(`http://${name}:${source.port}/`), 502, 'import_upstream_failed');
  });

  test('a name server that says nothing answers import_timed_out', async () => {
    expectRefusal(await send(`http://silent.test:${source.port}/`), 504, 'import_timed_out');
  });
});

test('no canary accepted a connection', () => {
  expect(canaries.accepted).toEqual([]);
});
