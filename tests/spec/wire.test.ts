/** Bytes on the wire that are not quite HTTP: nothing is smuggled, nothing falls over, and whoever keeps to the rules is served. */
import { afterEach, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { openRaw, sendRaw, type RawResponse } from '../support/raw-http.ts';

const { baseUrl, call, must, plan, upload } = sharedExchange();
const { host, pathname } = new URL(baseUrl);
const target = (path: string) => `${pathname.replace(/\/$/, '')}${path}`;

const request = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`;
const get = (path: string, ...headers: string[]) => request(`GET ${target(path)} HTTP/1.1`, `Host: ${host}`, ...headers);
const statuses = (responses: readonly RawResponse[]) => responses.map(({ status }) => status);

afterEach(async () => {
  expect((await call('/healthz')).status).toBe(200);
});

/** A request that another server might read as two; the second would ask for something that no test asks for otherwise. */
const smuggled = get('/smuggled');

/** Requests that two readers could take for different things. */
const ambiguous: [string, string][] = [
  ['Content-Length with Transfer-Encoding', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', `Content-Length: ${5 + smuggled.length}`, 'Transfer-Encoding: chunked')}0\r\n\r\n${smuggled}`],
  ['Transfer-Encoding with Content-Length', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Transfer-Encoding: chunked', 'Content-Length: 4', 'Content-Type: application/json')}2\r\n{}\r\n0\r\n\r\n${smuggled}`],
  ['two Content-Lengths that differ', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Content-Length: 2', `Content-Length: ${2 + smuggled.length}`)}{}${smuggled}`],
  ['two Content-Lengths that agree', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Content-Length: 2', 'Content-Length: 2')}{}${smuggled}`],
  ['two Content-Lengths in one', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Content-Length: 2, 2')}{}${smuggled}`],
  ['a Content-Length that is no number', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Content-Length: +2')}{}${smuggled}`],
  ['a Content-Length in hexadecimal', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Content-Length: 0x2')}{}${smuggled}`],
  ['a Content-Length below zero', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Length: -1')}${smuggled}`],
  ['a Content-Length of 30 digits', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, `Content-Length: ${'9'.repeat(30)}`)}${smuggled}`],
  ['chunked before another coding', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Transfer-Encoding: chunked, identity')}0\r\n\r\n${smuggled}`],
  ['an unknown transfer coding', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Transfer-Encoding: xchunked')}0\r\n\r\n${smuggled}`],
  ['a space before the colon', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Transfer-Encoding : chunked', 'Content-Length: 5')}0\r\n\r\n${smuggled}`],
  ['a folded header', request(`GET ${target('/healthz')} HTTP/1.1`, `Host: ${host}`, 'X-Folded: a', ' GET /smuggled HTTP/1.1')],
  ['a folded Transfer-Encoding', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Transfer-Encoding:', ' chunked', 'Content-Length: 5')}0\r\n\r\n${smuggled}`],
  ['bare LF as line ends', `GET ${target('/healthz')} HTTP/1.1\nHost: ${host}\n\n${smuggled}`],
  ['a bare CR in a header', request(`GET ${target('/healthz')} HTTP/1.1`, `Host: ${host}`, 'X-A: b\rX-C: d')],
  ['U+0000 in a header', request(`GET ${target('/healthz')} HTTP/1.1`, `Host: ${host}`, 'X-A: b\u0000c')],
  ['a header without a name', request(`GET ${target('/healthz')} HTTP/1.1`, `Host: ${host}`, ': value')],
  ['a chunk size with a sign', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}+2\r\n{}\r\n0\r\n\r\n${smuggled}`],
  ['a chunk size that overflows', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}10000000000000002\r\n{}\r\n0\r\n\r\n${smuggled}`],
  ['a chunk longer than its size', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}2\r\n{}xx\r\n0\r\n\r\n${smuggled}`],
  ['a chunk extension of 100,000 characters', `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}2;${'x'.repeat(100_000)}\r\n{}\r\n0\r\n\r\n${smuggled}`],
  ['no Host', `${request(`GET ${target('/healthz')} HTTP/1.1`)}${smuggled}`],
  ['two Hosts', request(`GET ${target('/healthz')} HTTP/1.1`, `Host: ${host}`, 'Host: evil.example')],
  ['an unknown version', request(`GET ${target('/healthz')} HTTP/3.0`, `Host: ${host}`)],
  ['a method that does not exist', request(`SMUGGLE ${target('/healthz')} HTTP/1.1`, `Host: ${host}`)],
  ['a space in the path', request(`GET ${target('/healthz')} /x HTTP/1.1`, `Host: ${host}`)],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a TLS greeting', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'],
];

describe('requests that could be read in two ways', () => {
  test.each(ambiguous)('%s: one refusal, the connection ends, and nothing after it is answered', async (_title, bytes) => {
    const connection = await openRaw(baseUrl);
    connection.send(Buffer.from(bytes, 'latin1'));
    const responses = await connection.untilClosed();
    expect(responses.length, JSON.stringify(responses)).toBeLessThanOrEqual(1);
    for (const { status, headers } of responses) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(500);
      expect(headers['connection']).toBe('close');
      expect(headers['x-content-type-options']).toBe('nosniff');
    }
    connection.close();
  });

  test('a header of 70,000 bytes answers 431, and ten thousand headers are no failure', async () => {
    const [large] = await sendRaw(baseUrl, get('/healthz', `X-Large: ${'x'.repeat(70_000)}`));
    expect(large).toMatchObject({ status: 431, headers: { connection: 'close', 'content-type': 'application/problem+json; charset=utf-8' } });
    expect(JSON.parse(large!.body)).toMatchObject({ code: 'headers_too_large', status: 431 });
    const [many] = await sendRaw(baseUrl, get('/healthz', ...Array.from({ length: 5_000 }, (_, index) => `X${index}: y`)));
    expect([200, 431]).toContain(many!.status);
  });

  test('a plan of 60,000 bytes is still a header', async () => {
    const [answer] = await sendRaw(baseUrl, request(`PUT ${target('/api/lane/single/pln_abc')} HTTP/1.1`, `Host: ${host}`, `X-Transfer-Plan: ${'x'.repeat(60_000)}`, 'Content-Length: 0'));
    expect([answer!.status, JSON.parse(answer!.body).code]).toEqual([403, 'plan_mismatch']);
  });
});

describe('requests that are unusual and good', () => {
  test('absolute-form asks for the path, whatever host it names', async () => {
    for (const address of [`http://${host}${target('/healthz')}`, `http://evil.example${target('/healthz')}`]) {
      const [answer] = await sendRaw(baseUrl, request(`GET ${address} HTTP/1.1`, `Host: ${host}`));
      expect([200, 404]).toContain(answer!.status);
      expect(answer!.body).not.toContain('evil.example/');
    }
  });

  test('the Host of a caller does not get into addresses', async () => {
    const body = JSON.stringify({ filename: 'a.txt', size: 1 });
    const [answer] = await sendRaw(baseUrl, `${request(`POST ${target('/api/transfer-plan')} HTTP/1.1`, 'Host: evil.example', 'X-Forwarded-Host: evil.example', 'Content-Type: application/json', `Content-Length: ${body.length}`)}${body}`);
    expect(answer!.status).toBe(201);
    expect(answer!.body).not.toContain('evil.example');
    expect(JSON.parse(answer!.body).upload.url.startsWith(`${baseUrl}/`)).toBe(true);
  });

  test('HTTP/1.0 is answered and ends its connection', async () => {
    const connection = await openRaw(baseUrl);
    connection.send(request(`GET ${target('/healthz')} HTTP/1.0`));
    const [answer] = await connection.untilClosed();
    expect([answer!.status, JSON.parse(answer!.body)]).toEqual([200, { ok: true }]);
    const { downloadUrl } = await upload('by an old client');
    const { pathname: path, search } = new URL(downloadUrl);
    const [bytes] = await sendRaw(baseUrl, request(`GET ${path}${search} HTTP/1.0`));
    expect([bytes!.status, bytes!.body]).toEqual([200, 'by an old client']);
  });

  test('short chunk extensions and trailers are read over', async () => {
    const [answer] = await sendRaw(baseUrl, `${request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}2;name=value\r\n{}\r\n0\r\nX-Trailer: y\r\n\r\n`);
    expect([answer!.status, JSON.parse(answer!.body).code]).toEqual([401, 'agent_auth_required']);
  });

  test('twenty requests at once on one connection are answered in their order', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `pipelined-${index}`);
    const responses = await sendRaw(baseUrl, ids.map((id, index) => get(['/healthz', '/nothing', '/api/audit', '/openapi.json'][index % 4]!, `X-Request-Id: ${id}`)).join(''), 20);
    expect(responses.map(({ headers }) => headers['x-request-id'])).toEqual(ids);
    expect(statuses(responses)).toEqual(ids.map((_, index) => [200, 404, 401, 200][index % 4]));
  });

  test('pipelined fetches of a share with two uses: two get the bytes, whatever comes after', async () => {
    const { downloadUrl } = await upload('twice', { maxUses: 2 });
    const { pathname: path, search } = new URL(downloadUrl);
    const responses = await sendRaw(baseUrl, request(`GET ${path}${search} HTTP/1.1`, `Host: ${host}`).repeat(5), 5);
    expect(statuses(responses).sort()).toEqual([200, 200, 410, 410, 410]);
    expect(responses.filter(({ status }) => status === 200).map(({ body }) => body)).toEqual(['twice', 'twice']);
  });

  test('the body of a refused request is never taken for the next request', async () => {
    const refused: [string, string, number][] = [['/api/agent/auth', 'application/json', 400], ['/api/agent/auth', 'text/plain', 415], ['/api/upload', 'text/plain', 410], ['/nothing', 'text/plain', 404], ['/api/upload/multipart/part', 'text/plain', 400]];
    for (const [path, type, status] of refused) {
      const connection = await openRaw(baseUrl);
      connection.send(request(`POST ${target(path)} HTTP/1.1`, `Host: ${host}`, `Content-Type: ${type}`, `Content-Length: ${smuggled.length}`));
      if (path !== '/api/agent/auth') expect(statuses(await connection.responses(1)), path).toEqual([status]);
      connection.send(smuggled);
      connection.send(get('/healthz', 'X-Request-Id: after-the-refusal', 'Connection: close'));
      const [refusal, ...next] = await connection.untilClosed();
      expect(refusal!.status, path).toBe(status);
      // Some refusals end the connection; none goes on in the middle of a body.
      if (next.length > 0 || refusal!.headers['connection'] !== 'close') expect(next.map((answer) => [answer.status, answer.headers['x-request-id']]), path).toEqual([[200, 'after-the-refusal']]);
      connection.close();
    }
  });

  test('a sender that goes on and on after its refusal is cut off', async () => {
    const connection = await openRaw(baseUrl);
    connection.send(request(`POST ${target('/api/upload')} HTTP/1.1`, `Host: ${host}`, 'Content-Length: 1000000000'));
    expect(statuses(await connection.responses(1))).toEqual([410]);
    const drip = setInterval(() => { if (!connection.isClosed()) connection.send('x'); }, 200);
    expect(statuses(await connection.untilClosed())).toEqual([410]);
    clearInterval(drip);
    connection.close();
  });
});

describe('Expect: 100-continue', () => {
  const put = (planId: string, headers: Record<string, string>, length: number) => request(`PUT ${target(`/api/lane/single/${planId}`)} HTTP/1.1`, `Host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), 'Expect: 100-continue', `Content-Length: ${length}`);

  test.each([['a small one', 10], ['a large one', 100_000]])('an accepted upload, %s, is asked for its body and stored', async (_title, length) => {
    const planned = await plan({ filename: 'a.bin', size: length, lane: 'single' });
    const connection = await openRaw(baseUrl);
    connection.send(put(planned.planId, planned.upload.headers, length));
    expect(statuses(await connection.responses(1))).toEqual([100]);
    connection.send('x'.repeat(length));
    const [, stored] = await connection.responses(2);
    expect(stored!.status).toBe(201);
    expect((await must(JSON.parse(stored!.body).downloadUrl)).bytes.length).toBe(length);
    connection.close();
  });

  test.each([['no plan', {}, 100_000, 401], ['a forged plan', { 'X-Transfer-Plan': 'garbage' }, 100_000, 403]])('an upload with %s is refused without being asked for its body', async (_title, headers, length, status) => {
    expect(statuses(await sendRaw(baseUrl, put('pln_abc', headers as Record<string, string>, length)))).toEqual([status]);
  });

  test('an upload of more than was planned is refused without being asked for its body', async () => {
    const planned = await plan({ filename: 'a.bin', size: 40_000, lane: 'single' });
    const responses = await sendRaw(baseUrl, put(planned.planId, planned.upload.headers, 100_000));
    expect(responses).toHaveLength(1);
    expect([403, 413]).toContain(responses[0]!.status);
  });

  test('a JSON body is asked for, and one that nobody wants is not', async () => {
    const connection = await openRaw(baseUrl);
    connection.send(request(`POST ${target('/api/agent/auth')} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', 'Expect: 100-continue', 'Content-Length: 2'));
    expect(statuses(await connection.responses(1))).toEqual([100]);
    connection.send('{}');
    expect(statuses(await connection.responses(2))).toEqual([100, 401]);
    connection.close();
    expect(statuses(await sendRaw(baseUrl, request(`POST ${target('/nothing')} HTTP/1.1`, `Host: ${host}`, 'Expect: 100-continue', 'Content-Length: 2')))).toEqual([404]);
  });

  test('an expectation that nobody knows is refused or read over, and no failure', async () => {
    const [answer] = await sendRaw(baseUrl, get('/healthz', 'Expect: 200-ok'));
    expect([200, 417]).toContain(answer!.status);
  });
});

describe('a slow client', () => {
  test('whose headers drip in is cut off, while others are served', async () => {
    const slow = await Promise.all(Array.from({ length: 50 }, () => openRaw(baseUrl)));
    for (const connection of slow) connection.send(`GET ${target('/healthz')} HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `);
    const drip = setInterval(() => { for (const connection of slow) if (!connection.isClosed()) connection.send('x'); }, 1_000);
    const begun = Date.now();
    try {
      while (!slow.every((connection) => connection.isClosed()) && Date.now() - begun < 55_000) {
        const asked = Date.now();
        expect((await call('/healthz')).status).toBe(200);
        expect(Date.now() - asked).toBeLessThan(5_000);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      expect(slow.filter((connection) => !connection.isClosed())).toHaveLength(0);
      const [told] = await slow[0]!.untilClosed();
      expect([told!.status, JSON.parse(told!.body).code]).toEqual([408, 'request_timed_out']);
    } finally {
      clearInterval(drip);
      for (const connection of slow) connection.close();
    }
  }, 60_000);
});
