/** Bodies, paths and queries that no careful client sends: each gets a problem with its documented code, none an internal error. */
import { describe, expect, test } from 'vitest';
import { sharedExchange, type Answer } from '../support/exchange.ts';
import { multipartLane } from '../support/multipart-lane.ts';
import { sendRaw } from '../support/raw-http.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { baseUrl, call, must, upload } = exchange;

const json = { 'content-type': 'application/json' };
const post = (path: string, body: string | Uint8Array, headers: Record<string, string> = json) => call(path, { method: 'POST', body, headers });

/** Every endpoint that takes JSON. Those that also work without a body take an empty one. */
const endpoints: readonly { path: string; mayBeEmpty?: true }[] = [
  { path: '/api/transfer-plan' }, { path: '/api/upload/multipart/init' }, { path: '/api/upload/multipart/complete' }, { path: '/api/upload/multipart/abort' },
  { path: '/api/agent/grants' }, { path: '/api/agent/keys', mayBeEmpty: true }, { path: '/api/agent/auth', mayBeEmpty: true }, { path: '/api/owner/session' },
];

const deep = (open: string, close: string) => open.repeat(100_000) + close.repeat(100_000);

/** Bodies that are refused before any endpoint looks at their fields. */
const unreadable: [string, string | Uint8Array, string][] = [
  ['a list', '[]', 'body'], ['a list of objects', '[{}]', 'body'], ['a string', '"filename"', 'body'], ['null', 'null', 'body'], ['a number', '5', 'body'], ['true', 'true', 'body'],
  ['half an object', '{', 'body'], ['a comma too many', '{"a":1,}', 'body'], ['single quotes', "{'a':1}", 'body'], ['NaN', '{"a":NaN}', 'body'], ['a comment', '{/* */}', 'body'], ['two values', '{}{}', 'body'],
  ['a raw line end in a string', '{"a":"\n"}', 'body'], ['spaces alone', '   ', 'body'], ['U+0000 after the value', '{}\u0000', 'body'],
  ['a byte order mark', '\ufeff{}', 'body'], ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'body'], ['an overlong encoding', Buffer.from([0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), 'body'],
  ['a surrogate in UTF-8', Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), 'body'], ['UTF-16', Buffer.from('{}', 'utf16le'), 'body'], ['gzip', Buffer.from('1f8b0800000000000003abae050043bfa6a302000000', 'hex'), 'body'],
  ['__proto__', '{"__proto__":{"size":1}}', '__proto__'], ['__proto__ in escapes', '{"\\u005f\\u005fproto__":1}', '__proto__'], ['__proto__ further in', '{"policyMetadata":{"__proto__":"x"}}', '__proto__'],
  ['100,000 lists in each other', deep('[', ']'), 'body'],
];

describe.each(endpoints)('a body of POST $path', ({ path, mayBeEmpty }) => {
  test.each(unreadable)('%s answers invalid_request', async (_title, body, field) => {
    expectRefusal(await post(path, body), 400, 'invalid_request', field);
  });

  test('100,000 objects in each other, under a known and under an unknown name, answer invalid_request', async () => {
    for (const name of ['filename', 'unknown']) {
      const answer = await post(path, `{"${name}":${deep('{"a":', '}').replace(':}', ':1}')}}`);
      expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
    }
  });

  test('names that objects have by birth are unknown fields', async () => {
    for (const name of ['constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf']) {
      const answer = await post(path, `{"${name}":{"prototype":{"admin":true}}}`);
      expect(answer.json.errors.map((error: { path: string }) => error.path), name).toContain(name);
    }
  });

  test('nothing at all is refused where a body is needed', async () => {
    const answers = [await post(path, ''), await call(path, { method: 'POST' }), await call(path, { method: 'POST', headers: json })];
    for (const answer of answers) {
      if (mayBeEmpty) expect(answer.status).toBe(401);
      else expectRefusal(answer, 400, 'invalid_request', 'body');
    }
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/octet-stream', 'application/jsonx', 'application/json garbage', 'application/json,text/plain', 'application/problem+json', 'text/json', '/', 'json'])(
    'Content-Type %s answers unsupported_media_type', async (type) => {
      expectRefusal(await post(path, '{}', { 'content-type': type }), 415, 'unsupported_media_type');
    });

  test('a body without Content-Type answers unsupported_media_type', async () => {
    const [answer] = await sendRaw(baseUrl, `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`);
    expect([answer!.status, JSON.parse(answer!.body).code]).toEqual([415, 'unsupported_media_type']);
  });

  test('one byte more than 1 MiB answers payload_too_large, said or not said before', async () => {
    const body = Buffer.alloc(1_024 ** 2 + 1, ' ');
    body.write('{}');
    expectRefusal(await post(path, body), 413, 'payload_too_large');
    const chunked = new ReadableStream({
      start(controller) {
        for (let at = 0; at < body.length; at += 65_536) controller.enqueue(body.subarray(at, at + 65_536));
        controller.close();
      },
    });
    expectRefusal(await call(path, { method: 'POST', body: chunked, headers: json }), 413, 'payload_too_large');
  });
});

describe('bodies that are unusual and good', () => {
  const plan = { filename: 'a.txt', size: 1 };

  test('exactly 1 MiB, parameters after the type, another case of it, escapes and white space', async () => {
    const padded = JSON.stringify(plan).padEnd(1_024 ** 2, ' ');
    expect((await post('/api/transfer-plan', padded)).status).toBe(201);
    for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset="utf-8"', 'application/json;']) {
      expect((await post('/api/transfer-plan', JSON.stringify(plan), { 'content-type': type })).status, type).toBe(201);
    }
    expect((await post('/api/transfer-plan', '\r\n\t {"\\u0066ilename" : "a.txt" ,\n "size" : 1.0e0 }\n')).status).toBe(201);
  });

  test('of a key that stands twice the last one counts', async () => {
    const planned = (await must('/api/transfer-plan', { method: 'POST', body: '{"filename":"first.txt","maxUses":5,"filename":"last.txt","size":99,"size":1,"maxUses":1}', headers: json })).json;
    expect(planned.release.maxUses).toBe(1);
    const { shareId } = (await must(planned.upload.url, { method: 'PUT', headers: planned.upload.headers, body: 'x' })).json;
    expect((await must(`/api/share/${shareId}`)).json.filename).toBe('last.txt');
  });
});

/** Paths with encodings and lengths that no id has. */
const strangePaths: [string, number, string][] = [
  ...['/api/share/%', '/api/share/%zz', '/api/share/%c0%80', '/api/share/%ff', '/s/%ff', '/api/dl/%e0%a4', '/api/agent/keys/%', '/problems/%zz'].map((path): [string, number, string] => [path, 400, 'invalid_request']),
  [`/api/share/${'x'.repeat(600)}`, 404, 'route_not_found'], [`/${'x'.repeat(20_000)}`, 404, 'route_not_found'], [`/${'a/'.repeat(5_000)}`, 404, 'route_not_found'], [`/api/dl/trf_${'x'.repeat(600)}`, 404, 'route_not_found'],
  [`/api/share/shr_${'x'.repeat(300)}`, 400, 'invalid_request'], [`/api/dl/trf_${'x'.repeat(300)}`, 404, 'transfer_not_found'],
];

describe('paths and queries', () => {
  test.each(strangePaths)('%.40s answers %i %s', async (path, status, code) => {
    expectRefusal(await call(path), status, code);
  });

  test('a query of 20,000 characters is no failure', async () => {
    const long = 'x'.repeat(20_000);
    expectRefusal(await call(`/api/share/shr_abc?${long}`), 400, 'invalid_request', 'x'.repeat(64));
    expectRefusal(await call(`/api/dl/trf_abc?share_id=${long}`), 404, 'share_not_found_or_expired');
    expectRefusal(await call(`/api/upload/multipart/status?uploadId=${long}`), 400, 'invalid_request', 'uploadId', 'uploadId');
    expect((await call(`/healthz?${long}`)).status).toBe(200);
  });

  test('a thousand parameters are no failure', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => `p${index}=1`).join('&');
    expectRefusal(await call(`/api/share/shr_abc?${many}`), 400, 'invalid_request', 'p0');
  });

  test.each([
    ['/api/share/shr_abc?x=1', 'x'], ['/api/share/shr_abc?shareId=shr_def', 'shareId'], ['/api/upload/multipart/status?uploadId=mpu_a&uploadId=mpu_b', 'uploadId'], ['/api/upload/multipart/status?uploadId=mpu_a&x=1', 'x'],
    ['/api/upload/multipart/status?uploadId[]=mpu_a', 'uploadId[]'], ['/api/upload/multipart/status', 'uploadId'], ['/api/upload/multipart/status?uploadId=', 'uploadId'], ['/api/share/shr_abc?__proto__=1', '__proto__'],
    ['/api/dl/trf_abc?share_id=shr_a&share_id=shr_b', 'share_id'], ['/.well-known/jwks.json?x=1', 'x'], ['/api/share/shr_abc?constructor=1', 'constructor'],
  ])('%s names %s', async (path, field) => {
    expectRefusal(await call(path), 400, 'invalid_request', field);
  });

  test('the query of a POST is no place for fields of its body', async () => {
    expectRefusal(await call('/api/transfer-plan?size=1', { json: { filename: 'a.txt' } }), 400, 'invalid_request', 'size');
    expectRefusal(await call('/api/upload/multipart/complete?uploadId=mpu_abc', { json: {} }), 400, 'invalid_request', 'uploadId');
  });

  test('a grant and a delete token in the query are not looked at', async () => {
    const { id, shareId, deleteToken } = await upload('x');
    expectRefusal(await call(`/api/dl/${id}?deleteToken=${deleteToken}`, { method: 'DELETE' }), 400, 'invalid_request', 'deleteToken');
    expect((await call(`/api/dl/${id}?share_id=${shareId}`)).text).toBe('x');
  });
});

describe('forms of POST /api/upload/multipart/part', () => {
  const form = (body: string, type = 'multipart/form-data; boundary=x') => post('/api/upload/multipart/part', body, { 'content-type': type });
  const field = (name: string, value: string) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

  test.each([
    ['no boundary', '--x--', 'multipart/form-data'], ['an end too early', '--x\r\nContent-Disposition: form-data; name="uploadId"\r\n\r\nmpu_', undefined], ['seven fields', `${field('uploadId', 'mpu_a').repeat(7)}--x--`, undefined],
    ['the field __proto__', `${field('__proto__', '1')}--x--`, undefined], ['another boundary', '--y\r\n\r\n--y--', undefined],
  ])('%s answers invalid_request', async (_title, body, type) => {
    const answer: Answer = await form(body, type);
    expect([answer.status, answer.json.code], answer.text).toEqual([400, 'invalid_request']);
  });

  test('a file that ends too early answers invalid_request, and its upload goes on', async () => {
    const lane = multipartLane(exchange);
    const { uploadId } = await lane.begin(5);
    const file = '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nhel';
    expectRefusal(await form(`${field('uploadId', uploadId)}${field('partNumber', '1')}${file}`), 400, 'invalid_request', 'body');
    expect((await lane.status(uploadId)).json.parts).toEqual([]);
    expect((await form(`${field('uploadId', uploadId)}${field('partNumber', '1')}${file}lo\r\n--x--`)).status).toBe(200);
  });
});
