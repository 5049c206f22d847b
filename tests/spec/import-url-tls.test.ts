/** POST /api/import-url over https: the certificate must be valid for the host of the URL (interface chapter: Transfer plan and creation). */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCertificate, type Certificate } from '../support/certificate.ts';
import { startDnsServer, type DnsServer } from '../support/dns-server.ts';
import { importer, startImporting } from '../support/importing.ts';
import type { OwnStack } from '../support/own-stack.ts';
import { expectRefusal } from '../support/refusals.ts';
import { behind, listenOn, publicAddress, startSourceServer, type SourceServer } from '../support/source-server.ts';

const trusted = makeCertificate('good.test');
let folder: string;
let dns: DnsServer;
let own: OwnStack;
let plain: SourceServer;
let secure: number;
let stranger: number;
const asked: unknown[] = [];
let send: ReturnType<typeof importer>;

async function startSecure({ key, cert }: Certificate): Promise<number> {
  const server = createServer({ key, cert }, ({ socket, headers }, response) => {
    asked.push([(socket as TLSSocket).servername, headers.host]);
    response.end('over tls');
  });
  server.unref();
  return (await listenOn(server, publicAddress)).port;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aex-tls-'));
  await writeFile(join(folder, 'ca.pem'), trusted.cert);
  dns = await startDnsServer({ 'good.test': [publicAddress], 'other.test': [publicAddress] });
  [secure, stranger, plain] = await Promise.all([startSecure(trusted), startSecure(makeCertificate('good.test')), startSourceServer()]);
  // The second variable asks clients to believe everybody.
  own = await startImporting(dns.address, { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'), NODE_TLS_REJECT_UNAUTHORIZED: '0' });
  send = importer(own.exchange);
});
afterAll(async () => {
  plain.close();
  dns.close();
  await own.remove();
  await rm(folder, { recursive: true });
});

test('a valid certificate is accepted, by the name of the URL', async () => {
  const made = await send(`https://good.test:${secure}/file`);
  expect([made.status, (await own.exchange.must(made.json.downloadUrl)).text]).toEqual([201, 'over tls']);
  expect(asked).toEqual([['good.test', `good.test:${secure}`]]);
  expect((await send(`https://GOOD.test.:${secure}/file`)).status).toBe(201);
  expect((await send(plain.url(behind(1, `https://good.test:${secure}/file`)))).status).toBe(201);
});

test.each<[string, () => string]>([
  ['for another name', () => `https://other.test:${secure}/file`],
  ['for a name where the URL has an address', () => `https://${publicAddress}:${secure}/file`],
  ['that nobody vouches for', () => `https://good.test:${stranger}/file`],
  ['that is not there: no TLS', () => `https://good.test:${plain.port}/text`],
  ['behind a redirect, for another name', () => plain.url(behind(1, `https://other.test:${secure}/file`))],
  ['that nobody asked for: TLS where http is spoken', () => `http://good.test:${secure}/file`],
])('a certificate %s answers import_upstream_failed', async (_what, url) => {
  const before = asked.length;
  expectRefusal(await send(url()), 502, 'import_upstream_failed');
  expect(asked.length).toBe(before);
});
