/** Fetching a transfer: its headers, what it needs, and what spends a use (interface chapter: Transfer bytes). */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sharedExchange, type Uploaded } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { digestOf, sha256Of } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, must, upload } = exchange;

/** Small files and large ones are kept in different places; nobody should notice. */
const sizes: [string, Buffer][] = [['small', Buffer.from('0123456789')], ['large', randomBytes(100_000)]];

describe.each(sizes)('GET /api/dl/{id}, %s', (_size, bytes) => {
  test('answers the bytes with every header that a careful client needs', async () => {
    const before = Math.floor(Date.now() / 1_000) * 1_000;
    const { id, downloadUrl } = await upload(bytes, { filename: 'report.txt', mimeType: 'text/plain; charset=utf-8' });
    const answer = await must(downloadUrl);
    expect(answer.status).toBe(200);
    expect(answer.bytes.equals(bytes)).toBe(true);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-length': String(bytes.length),
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': `attachment; filename="report.txt"; filename*=UTF-8''report.txt`,
      'etag': expect.stringMatching(/^"[^"]+"$/),
      'accept-ranges': 'bytes',
      'cache-control': 'no-store',
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.any(String),
    });
    expect(answer.headers.get('etag')).toContain(id);
    const modified = Date.parse(answer.headers.get('last-modified')!);
    expect(modified).toBeGreaterThanOrEqual(before);
    expect(modified).toBeLessThanOrEqual(Date.now());
    for (const name of ['x-remaining-uses', 'content-range', 'set-cookie', 'content-encoding']) expect(answer.headers.has(name)).toBe(false);
  });

  test('tells the digest when it is known', async () => {
    const { downloadUrl } = await upload(bytes, { sha256: sha256Of(bytes) });
    expect((await must(downloadUrl)).headers.get('repr-digest')).toBe(digestOf(bytes));
    expect((await must(downloadUrl, { headers: { Range: 'bytes=1-2' } })).headers.get('repr-digest')).toBe(digestOf(bytes));
  });

  test('every 200 and 206 spends a use and says how many remain; nothing else does', async () => {
    const { id, shareId, downloadUrl } = await upload(bytes, { maxUses: 3 });
    const etag = (await headOf(exchange, `/api/dl/${id}`)).headers.get('etag')!;
    const get = (headers: Record<string, string> = {}) => call(downloadUrl, { headers });

    async function spendNothing() {
      expect((await headOf(exchange, downloadUrl)).status).toBe(200);
      expect((await get({ 'If-None-Match': etag })).status).toBe(304);
      expectRefusal(await get({ Range: `bytes=${bytes.length}-` }), 416, 'range_not_satisfiable');
      expectRefusal(await get({ 'If-Match': '"another"' }), 412, 'precondition_failed');
      for (const purpose of ['prefetch', 'prefetch;prerender', 'prefetch;anonymous-client-ip']) expectRefusal(await get({ 'Sec-Purpose': purpose }), 403, 'forbidden');
      expectRefusal(await call(`/api/dl/${id}`), 400, 'share_id_required');
      expectRefusal(await call(`/api/dl/${id}?share_id=${shareId}&share_id=${shareId}`), 400, 'invalid_request', 'share_id');
      expectRefusal(await call(`/api/dl/${id}?share_id=shr_another`), 404, 'share_not_found_or_expired');
      expectRefusal(await get({ 'X-Access-Grant': 'agrt_a.b' }), 403, 'invalid_grant');
      await must(`/api/share/${shareId}`);
      await must(`/s/${shareId}`);
    }
    await spendNothing();
    expect((await get()).headers.get('x-remaining-uses')).toBe('2');
    await spendNothing();
    expect((await get({ Range: 'bytes=0-1' })).headers.get('x-remaining-uses')).toBe('1');
    expect((await get({ 'If-Match': etag })).headers.get('x-remaining-uses')).toBe('0');
    for (const headers of [{}, { Range: 'bytes=0-1' }, { 'If-Match': etag }] as Record<string, string>[]) expectRefusal(await get(headers), 410, 'share_use_limit_exceeded');
    expect((await headOf(exchange, downloadUrl)).status).toBe(200);
  });

  test('forty who race for seven uses get seven', async () => {
    const { downloadUrl } = await upload(bytes, { maxUses: 7 });
    const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => call(downloadUrl, { headers: index % 3 ? {} : { Range: 'bytes=0-4' } })));
    const letThrough = answers.filter(({ status }) => status < 300);
    expect(letThrough.map(({ headers }) => headers.get('x-remaining-uses')).sort()).toEqual(['0', '1', '2', '3', '4', '5', '6']);
    for (const answer of answers.filter((one) => !letThrough.includes(one))) expectRefusal(answer, 410, 'share_use_limit_exceeded');
  });

  test('preconditions are evaluated as RFC 9110 says', async () => {
    const { id, downloadUrl } = await upload(bytes);
    const { headers } = await headOf(exchange, `/api/dl/${id}`);
    const [etag, modified] = [headers.get('etag')!, headers.get('last-modified')!];
    const earlier = new Date(Date.parse(modified) - 60_000).toUTCString();
    const statusWith = async (conditions: Record<string, string>) => (await call(downloadUrl, { headers: conditions })).status;

    for (const value of [etag, `W/${etag}`, `"a", ${etag}`, '*']) expect(await statusWith({ 'If-None-Match': value })).toBe(304);
    expect(await statusWith({ 'If-None-Match': '"a", "b"' })).toBe(200);
    expect(await statusWith({ 'If-None-Match': '"a"', 'If-Modified-Since': modified })).toBe(200);
    expect(await statusWith({ 'If-Modified-Since': modified })).toBe(304);
    expect(await statusWith({ 'If-Modified-Since': earlier })).toBe(200);
    expect(await statusWith({ 'If-Modified-Since': 'yesterday' })).toBe(200);
    for (const value of [etag, `"a", ${etag}`, '*']) expect(await statusWith({ 'If-Match': value })).toBe(200);
    for (const value of ['"a"', `W/${etag}`]) expect(await statusWith({ 'If-Match': value })).toBe(412);
    expect(await statusWith({ 'If-Unmodified-Since': modified })).toBe(200);
    expectRefusal(await call(downloadUrl, { headers: { 'If-Unmodified-Since': earlier } }), 412, 'precondition_failed');
  });

  test('304 says which version it means and nothing about the bytes', async () => {
    const { downloadUrl } = await upload(bytes, { maxUses: 1 });
    const { headers, bytes: body } = await call(downloadUrl, { headers: { 'If-None-Match': '*' } });
    expect(headers.get('etag')).toMatch(/^"/);
    expect(headers.get('x-request-id')).toBeTruthy();
    expect(body).toHaveLength(0);
    for (const name of ['content-length', 'content-type', 'content-disposition', 'x-remaining-uses']) expect(headers.has(name)).toBe(false);
  });
});

describe.each(sizes)('HEAD /api/dl/{id}, %s', (_size, bytes) => {
  test('answers the headers of a fetch, and needs nothing', async () => {
    const { id, downloadUrl } = await upload(bytes, { allowedAgentIds: ['a1'] });
    expectRefusal(await call(downloadUrl), 401, 'grant_required');
    const open = await upload(bytes);
    const { status, headers } = await headOf(exchange, `/api/dl/${open.id}`);
    const own = new Set(['date', 'x-request-id', 'keep-alive', 'connection']);
    const comparable = (all: Headers) => [...all].filter(([name]) => !own.has(name));
    expect(status).toBe(200);
    expect(comparable(headers)).toEqual(comparable((await must(open.downloadUrl)).headers));
    expect((await headOf(exchange, `/api/dl/${id}`)).headers.get('content-length')).toBe(String(bytes.length));
  });

  test('takes no range, and its conditions hold', async () => {
    const { id } = await upload(bytes);
    const { status, headers } = await headOf(exchange, `/api/dl/${id}`, { Range: 'bytes=0-1' });
    expect({ status, length: headers.get('content-length') }).toEqual({ status: 200, length: String(bytes.length) });
    expect((await headOf(exchange, `/api/dl/${id}`, { 'If-None-Match': headers.get('etag')! })).status).toBe(304);
    expect((await headOf(exchange, `/api/dl/${id}`, { 'If-Match': '"a"' })).status).toBe(412);
  });

  test('finds nothing where there is no transfer', async () => {
    for (const id of ['trf_doesnotexist', 'shr_x', 'x', 'trf_']) expect((await headOf(exchange, `/api/dl/${id}`)).status).toBe(404);
  });
});

describe('GET /api/dl/{id}, what it needs', () => {
  test('an open transfer needs its own share', async () => {
    const [one, two] = [await upload('one'), await upload('two')];
    expectRefusal(await call(`/api/dl/${one.id}`), 400, 'share_id_required');
    expectRefusal(await call(`/api/dl/${one.id}?share_id=${two.shareId}`), 404, 'share_not_found_or_expired');
    for (const malformed of ['', 'x', one.id, 'shr_', 'shr_%00', `${one.shareId}x`, one.shareId.toUpperCase()]) {
      expectRefusal(await call(`/api/dl/${one.id}?share_id=${malformed}`), 404, 'share_not_found_or_expired');
    }
    for (const twice of [`share_id=${one.shareId}&share_id=${one.shareId}`, `share_id=${two.shareId}&share_id=${one.shareId}`]) {
      expectRefusal(await call(`/api/dl/${one.id}?${twice}`), 400, 'invalid_request', 'share_id');
    }
    expect((await must(one.downloadUrl)).text).toBe('one');
  });

  test('a credential neither helps nor hinders the fetch of an open transfer', async () => {
    const { downloadUrl } = await upload('one');
    for (const bearer of [await exchange.signIn(), 'garbage']) expect((await call(downloadUrl, { bearer })).status).toBe(200);
  });

  test('a transfer that does not exist is not found, whatever its id looks like', async () => {
    const { shareId } = await upload('x');
    for (const id of ['trf_doesnotexist', 'trf_', 'x', 'mpu_x', shareId, 'trf_a%2fb', 'trf_%00', '..%2f..', `trf_${'x'.repeat(200)}`]) expectRefusal(await call(`/api/dl/${id}`), 404, 'transfer_not_found');
    expectRefusal(await call(`/api/dl/trf_doesnotexist?share_id=${shareId}`), 404, 'share_not_found_or_expired');
    expectRefusal(await call('/api/dl/trf_doesnotexist', { headers: { Range: 'bytes=0-1' } }), 404, 'transfer_not_found');
  });

  test('an empty transfer is fetched as nothing', async () => {
    const planned = await exchange.plan({ filename: 'empty' });
    const { json } = await must(planned.upload.url, { method: 'PUT', headers: planned.upload.headers, body: '' });
    const answer = await must((json as Uploaded).downloadUrl);
    expect({ status: answer.status, length: answer.headers.get('content-length'), size: answer.bytes.length }).toEqual({ status: 200, length: '0', size: 0 });
    expectRefusal(await call((json as Uploaded).downloadUrl, { headers: { Range: 'bytes=0-0' } }), 416, 'range_not_satisfiable');
  });
});

describe('GET /api/dl/{id}, hostile senders', () => {
  test.each([
    'a"b.txt', "it's (1)*.txt", 'a;b=c.txt', '%0d%0aX-Evil: 1', 'a%22; filename="b', '\u202egpj.exe', 'ü€😀.txt', 'CON', 'C:', '=cmd()', ' lead and trail ', '<script>', '\u200f', '\ud83d\ude00'.repeat(60),
  ])('the name %j stays inside its header and comes back whole', async (filename) => {
    const { downloadUrl } = await upload('x', { filename });
    const { headers } = await must(downloadUrl);
    const disposition = headers.get('content-disposition')!;
    expect(disposition).toMatch(/^attachment; filename="[^"\\%;\x00-\x1f\x7f-\uffff]*"; filename\*=UTF-8''[A-Za-z0-9!#$&+.^_`|~%-]*$/);
    expect(decodeURIComponent(disposition.split("UTF-8''")[1]!)).toBe(filename.normalize('NFC'));
    expect(headers.has('x-evil')).toBe(false);
  });

  test.each([
    'text/html', 'TEXT/HTML', 'text/html; charset=utf-8', 'application/xhtml+xml', 'image/svg+xml', 'text/xml', 'application/xml', 'application/rss+xml', 'text/javascript', 'application/javascript',
    'application/pdf', 'multipart/x-mixed-replace', 'application/wasm', 'application/x-shockwave-flash', 'message/rfc822',
  ])('the type %s could run and is served as bytes', async (mimeType) => {
    const { downloadUrl, shareId } = await upload('<script>alert(1)</script>', { mimeType });
    const { headers } = await must(downloadUrl);
    expect(headers.get('content-type')).toBe('application/octet-stream');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-disposition')).toMatch(/^attachment/);
    expect((await must(`/api/share/${shareId}`)).json.mimeType).toBe(mimeType);
  });

  test.each(['application/json', 'text/plain', 'image/png', 'video/mp4', 'application/zip'])('the type %s is served as it is', async (mimeType) => {
    expect((await must((await upload('1', { mimeType })).downloadUrl)).headers.get('content-type')).toBe(mimeType);
  });
});
