/** POST /api/import-url and servers that lie, stall, never end or fail (interface chapter: Errors). */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createServer, type Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDnsServer, type DnsServer } from '../support/dns-server.ts';
import type { Answer } from '../support/exchange.ts';
import { importer, startImporting } from '../support/importing.ts';
import type { OwnStack } from '../support/own-stack.ts';
import { expectRefusal } from '../support/refusals.ts';
import { behind, listenOn, publicAddress, startRawServer, startSourceServer, type Page, type SourceServer } from '../support/source-server.ts';

const MiB = 1_024 ** 2;

const coded = (coding: string, body: Buffer): Page => (_request, response) => response.writeHead(200, { 'content-encoding': coding }).end(body);
/** Goes on for as long as somebody reads. */
const endless = (head: Record<string, string>, first: Buffer, piece: Buffer): Page => (_request, response) => {
  response.writeHead(200, head).write(first);
  const go = () => { while (response.write(piece)); };
  response.on('drain', go);
  go();
};
const text = Buffer.from('the text itself '.repeat(1_000));

const pages: Record<string, Page> = {
  'full': (_request, response) => response.end(Buffer.alloc(MiB)),
  'declared': (_request, response) => response.writeHead(200, { 'content-length': String(MiB + 1) }).write('x'),
  'one-more': (_request, response) => { response.write(Buffer.alloc(MiB)); response.end('x'); },
  'endless': endless({}, Buffer.alloc(0), Buffer.alloc(65_536)),
  'gzip': coded('gzip', gzipSync(text)),
  'x-gzip': coded('X-GZIP', gzipSync(text)),
  'deflate': coded('deflate', deflateSync(text)),
  'br': coded('br', brotliCompressSync(text)),
  'identity': coded('identity', text),
  'bomb': coded('gzip', gzipSync(Buffer.alloc(64 * MiB))),
  'br-bomb': coded('br', brotliCompressSync(Buffer.alloc(64 * MiB))),
  // Stored blocks of no length, one after the other: bytes that never become any.
  'empty-blocks': endless({ 'content-encoding': 'gzip' }, Buffer.from('1f8b0800000000000003', 'hex'), Buffer.from('000000ffff'.repeat(10_000), 'hex')),
  'twice': coded('gzip, gzip', gzipSync(gzipSync(text))),
  'unknown': coded('zstd-of-mine', text),
  'prototype': coded('constructor', text),
  'damaged': coded('gzip', Buffer.concat([gzipSync(text).subarray(0, 60), Buffer.alloc(200, 7)])),
  'cut': coded('gzip', gzipSync(text).subarray(0, -12)),
  'not-coded': coded('gzip', text),
  'status': ({ url }, response) => response.writeHead(Number(url!.slice('/status/'.length)), {}).end(),
  'loop': (_request, response) => response.writeHead(302, { location: '/loop' }).end(),
  'pair': ({ url }, response) => response.writeHead(307, { location: url === '/pair/a' ? '/pair/b' : '/pair/a' }).end(),
  'slow-loop': (_request, response) => void setTimeout(() => response.writeHead(302, { location: '/slow-loop' }).end(), 1_400),
};

const drip = (socket: Socket, piece: string) => {
  const timer = setInterval(() => socket.write(piece), 100);
  socket.on('close', () => clearInterval(timer));
};
const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n';

/** What a server says in its own bytes; the connection ends after it unless it goes on. */
const cut: Record<string, string> = {
  'a body shorter than its Content-Length': `${head}Content-Length: 100\r\n\r\nshort`,
  'a large body shorter than its Content-Length': `${head}Content-Length: 900000\r\n\r\n${'x'.repeat(200_000)}`,
  'two different Content-Lengths': `${head}Content-Length: 3\r\nContent-Length: 4\r\n\r\nbody`,
  'Content-Length and Transfer-Encoding': `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n`,
  'a Content-Length below zero': `${head}Content-Length: -4\r\n\r\nbody`,
  'a Content-Length of too many digits': `${head}Content-Length: ${'9'.repeat(40)}\r\n\r\nbody`,
  'chunks without their end': `${head}Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n`,
  'a chunk of no size': `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\nbody\r\n0\r\n\r\n`,
  'headers without their end': head,
  'headers of a megabyte': `${head}X-Long: ${'x'.repeat(MiB)}\r\n\r\nbody`,
  'a switch of protocols': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n',
  'another protocol': 'SSH-2.0-OpenSSH_9.9\r\n',
  'nothing at all': '',
  'a bare line feed': 'HTTP/1.1 200 OK\nContent-Length : 4\n\nbody',
};
/** What a server does, and which of the limits ends it. */
const stalled: Record<string, [(socket: Socket) => void, RegExp]> = {
  'says nothing': [() => undefined, /begin to answer within 2 seconds/],
  'drips its headers': [(socket) => { socket.write(head); drip(socket, 'X-Drop: 1\r\n'); }, /begin to answer/],
  'says 100 Continue for ever': [(socket) => drip(socket, 'HTTP/1.1 100 Continue\r\n\r\n'), /begin to answer/],
  'pauses in its body': [(socket) => socket.write(`${head}Content-Length: 100\r\n\r\nsome`), /paused/],
  'pauses in a large body': [(socket) => socket.write(`${head}Content-Length: 900000\r\n\r\n${'x'.repeat(200_000)}`), /paused/],
  'drips its body': [(socket) => { socket.write(`${head}Content-Length: 100000\r\n\r\n`); drip(socket, 'x'); }, /done within 4 seconds/],
  'drips chunks': [(socket) => { socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`); drip(socket, '1\r\nx\r\n'); }, /done within/],
};

let dns: DnsServer;
let own: OwnStack;
let source: SourceServer;
let send: ReturnType<typeof importer>;
beforeAll(async () => {
  dns = await startDnsServer({});
  [source, own] = await Promise.all([startSourceServer(pages), startImporting(dns.address)]);
  send = importer(own.exchange);
});
afterAll(async () => {
  source.close();
  dns.close();
  await own.remove();
});

async function content({ status, json, text: told }: Answer): Promise<Buffer> {
  expect([status, told]).toEqual([201, expect.stringContaining('downloadUrl')]);
  const { bytes } = await own.exchange.must(json.downloadUrl);
  await own.exchange.must(`/api/dl/${json.id}`, { method: 'DELETE', headers: { 'x-delete-token': json.deleteToken } });
  return bytes;
}

describe('the byte cap', () => {
  test('a body of exactly the cap is stored', async () => {
    expect((await content(await send(source.url('/full')))).length).toBe(MiB);
  });

  test.each(['declared', 'one-more', 'endless', 'bomb', 'br-bomb', 'empty-blocks'])('%s answers payload_too_large', async (page) => {
    const answer = await send(source.url(`/${page}`));
    expectRefusal(answer, 413, 'payload_too_large');
    expect(answer.json.detail).toContain(String(MiB));
  });
});

describe('codings', () => {
  test.each(['gzip', 'x-gzip', 'deflate', 'br', 'identity'])('%s is undone', async (page) => {
    expect((await content(await send(source.url(`/${page}`)))).equals(text)).toBe(true);
  });

  test.each(['twice', 'unknown', 'prototype', 'damaged', 'cut', 'not-coded'])('%s answers import_upstream_failed', async (page) => {
    expectRefusal(await send(source.url(`/${page}`)), 502, 'import_upstream_failed');
  });
});

describe('answers that are no file', () => {
  test.each([201, 202, 204, 206, 300, 304, 400, 401, 403, 404, 410, 418, 429, 500, 503])('status %i answers import_upstream_failed and says so', async (status) => {
    const answer = await send(source.url(`/status/${status}`));
    expectRefusal(answer, 502, 'import_upstream_failed');
    expect(answer.json.detail).toContain(String(status));
  });

  test.each([301, 302, 303, 307, 308])('status %i without a place to go answers import_upstream_failed', async (status) => {
    expectRefusal(await send(source.url(`/status/${status}`)), 502, 'import_upstream_failed');
  });

  test('five redirects are followed, and a sixth answers import_upstream_failed', async () => {
    expect((await content(await send(source.url(behind(5, '/text'))))).toString()).toBe('imported text');
    expectRefusal(await send(source.url(behind(6, '/text'))), 502, 'import_upstream_failed');
  });

  test.each(['/loop', '/pair/a'])('the loop %s answers import_upstream_failed', async (path) => {
    const before = source.requests.length;
    expectRefusal(await send(source.url(path)), 502, 'import_upstream_failed');
    expect(source.requests.length - before).toBe(6);
  });

  test('a port where nobody listens answers import_upstream_failed', async () => {
    const { server, port } = await listenOn(createServer(), publicAddress);
    await new Promise((resolve) => { server.close(resolve); });
    expectRefusal(await send(`http://${publicAddress}:${port}/`), 502, 'import_upstream_failed');
  });
});

describe('broken answers', () => {
  test.each(Object.entries(cut))('%s: import_upstream_failed', async (_what, bytes) => {
    expectRefusal(await send(await startRawServer((socket) => socket.end(bytes))), 502, 'import_upstream_failed');
  });

  test('a reset answers import_upstream_failed', async () => {
    expectRefusal(await send(await startRawServer((socket) => socket.resetAndDestroy())), 502, 'import_upstream_failed');
  });

  test('a body longer than its Content-Length is what the length says', async () => {
    expect((await content(await send(await startRawServer((socket) => socket.end(`${head}Content-Length: 4\r\n\r\nbody and more`))))).toString()).toBe('body');
  });

  test('a body without a length ends with its connection', async () => {
    expect((await content(await send(await startRawServer((socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nold'))))).toString()).toBe('old');
  });
});

describe('slow servers', () => {
  test.concurrent.each(Object.entries(stalled))('one that %s answers import_timed_out', async (_what, [say, detail]) => {
    const answer = await send(await startRawServer(say));
    expectRefusal(answer, 504, 'import_timed_out');
    expect(answer.json.detail).toMatch(detail);
  });

  test('redirects that take too long together answer import_timed_out', async () => {
    expectRefusal(await send(source.url('/slow-loop')), 504, 'import_timed_out');
  });
});

test('no bytes of a failed import stay in the blob store', async () => {
  const root = join(own.stack.dataDir, 'blobs');
  const files = async () => (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).length;
  await expect.poll(files, { timeout: 20_000 }).toBe(0);
});
