/** What operators and programs read about the exchange itself, and what every answer has in common (interface chapter: Errors). */
import { createPublicKey, verify } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { byMethod } from '../support/any-method.ts';
import { sharedExchange } from '../support/exchange.ts';
import { sendRaw } from '../support/raw-http.ts';
import { expectRefusal } from '../support/refusals.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';

const { baseUrl, owner, call, must, plan, signIn, upload } = sharedExchange();

/** The interface description, read as plain data. */
let openapi: any;
let codes: string[];
beforeAll(async () => {
  openapi = (await must('/openapi.json')).json;
  codes = openapi.components.schemas.Problem.properties.code.enum;
});

const verbs = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'];
const operations = (): [string, string, any][] => Object.entries<any>(openapi.paths)
  .flatMap(([path, item]) => verbs.filter((verb) => item[verb]).map((verb): [string, string, any] => [verb.toUpperCase(), path, item[verb]]));

describe('GET /healthz', () => {
  test('answers that the process runs', async () => {
    const answer = await call('/healthz');
    expect([answer.status, answer.json]).toEqual([200, { ok: true }]);
  });
});

describe('GET /readyz', () => {
  test('answers that NATS and every service are there', async () => {
    const answer = await call('/readyz');
    expect([answer.status, answer.json]).toEqual([200, { ready: true, nats: true, services: { storage: true, policy: true, audit: true, importer: true } }]);
  });
});

describe('GET /openapi.json', () => {
  test('is OpenAPI 3.1 of interface version 4.0.0, at this address', async () => {
    const answer = await call('/openapi.json');
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    expect(answer.json).toMatchObject({ openapi: '3.1.0', info: { title: expect.any(String), version: '4.0.0' }, servers: [{ url: baseUrl }] });
  });

  test.each([
    'POST /api/transfer-plan', 'PUT /api/lane/single/{planId}', 'POST /api/upload/multipart/init', 'POST /api/upload/multipart/part', 'POST /api/upload/multipart/complete',
    'POST /api/upload/multipart/abort', 'GET /api/upload/multipart/status', 'GET /api/share/{shareId}', 'POST /api/agent/auth', 'POST /api/agent/grants', 'POST /api/agent/keys', 'GET /api/agent/keys',
    'DELETE /api/agent/keys/{keyId}', 'POST /api/owner/session', 'GET /api/owner/session', 'DELETE /api/owner/session', 'GET /api/audit', 'GET /api/dl/{id}', 'HEAD /api/dl/{id}', 'DELETE /api/dl/{id}',
    'GET /.well-known/jwks.json', 'POST /api/upload', 'POST /api/tus', 'POST /mcp',
  ])('describes %s', (route) => {
    expect(operations().map(([method, path]) => `${method} ${path}`)).toContain(route);
  });

  test('every described route is there: none answers route_not_found or method_not_allowed', async () => {
    for (const [method, path, { responses }] of operations()) {
      const { status } = await byMethod(new URL(path.replace(/\{\w+\}/g, 'abc'), baseUrl), method);
      // A route that a deployment may be without says so itself.
      const mayBeAbsent = JSON.stringify(responses['404'] ?? {}).includes('route_not_found');
      const isAbsent = !['/api/dl/{id}', '/api/share/{shareId}', '/api/folder/{folderId}/zip'].includes(path) && !mayBeAbsent && status === 404;
      expect(isAbsent || status === 405, `${method} ${path}: ${status}`).toBe(false);
    }
  });

  test('is whole by its structure: ids once, every parameter of a path, every reference, answers of every operation', () => {
    const all = operations();
    const ids = all.map(([, , { operationId }]) => operationId).filter((id) => id !== undefined);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [method, path, operation] of all) {
      const name = `${method} ${path}`;
      const parameters = (operation.parameters ?? []) as { name: string; in: string; required?: boolean; schema?: object }[];
      const inPath = parameters.filter((parameter) => parameter.in === 'path');
      expect(inPath.map((parameter) => parameter.name).sort(), name).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, one]) => one!).sort());
      expect(inPath.every(({ required }) => required), name).toBe(true);
      expect(new Set(parameters.map((parameter) => `${parameter.in} ${parameter.name}`)).size, name).toBe(parameters.length);
      for (const parameter of parameters) {
        expect(['path', 'query', 'header', 'cookie'], name).toContain(parameter.in);
        expect(parameter.schema, name).toBeTypeOf('object');
      }
      expect(Object.keys(operation.responses).length, name).toBeGreaterThan(0);
      for (const [status, response] of Object.entries<any>(operation.responses)) {
        expect(status, name).toMatch(/^[1-5]\d\d$/);
        expect(response.description, name).toMatch(/\S/);
        for (const media of Object.values<any>(response.content ?? {})) expect(media.schema, name).toBeTypeOf('object');
      }
      for (const alternative of operation.security ?? []) {
        for (const scheme of Object.keys(alternative)) expect(openapi.components.securitySchemes, name).toHaveProperty(scheme);
      }
    }
  });

  test('every reference leads somewhere', () => {
    const references: string[] = [];
    JSON.stringify(openapi, (key, value: unknown) => {
      if (key === '$ref') references.push(value as string);
      return value;
    });
    expect(references.length).toBeGreaterThan(10);
    for (const reference of new Set(references)) {
      const found = reference.split('/').slice(1).reduce<any>((node, name) => node?.[name.replaceAll('~1', '/').replaceAll('~0', '~')], openapi);
      expect(reference).toMatch(/^#\//);
      expect(found, reference).toBeTypeOf('object');
    }
  });

  test('names the codes of every refusal, and each under its own status', async () => {
    for (const [method, path, { responses }] of operations()) {
      for (const [status, response] of Object.entries<any>(responses).filter(([one]) => Number(one) >= 400)) {
        expect(response['x-error-codes']?.length, `${method} ${path} ${status}`).toBeGreaterThan(0);
        for (const code of response['x-error-codes']) {
          expect(codes).toContain(code);
          expect((await must(`/problems/${code}`)).text, `${method} ${path} ${code}`).toContain(`<dd>${status}</dd>`);
        }
      }
    }
  });
});

describe('GET /docs', () => {
  test('names every route', async () => {
    const page = await call('/docs');
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const text = page.text.replaceAll('<wbr>', '').replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
    for (const [method, path] of operations()) expect(text).toContain(`${method} ${path}`);
  });

  test('every link on the pages leads to a page of the exchange, and every place on it exists', async () => {
    const seen = new Map<string, string>();
    const waiting = ['/', '/docs', '/docs/planned-upload', '/problems'];
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (seen.has(path)) continue;
      const page = await call(path);
      expect(page.status, path).toBe(200);
      seen.set(path, page.text);
      if (!page.headers.get('content-type')!.startsWith('text/html')) continue;
      for (const [, target] of page.text.matchAll(/(?:href|src)="([^"]+)"/g)) {
        const { origin, pathname, hash } = new URL(target!.replaceAll('&amp;', '&'), new URL(path, baseUrl));
        expect(origin, target).toBe(new URL(baseUrl).origin);
        waiting.push(pathname);
        if (hash && pathname === path) expect(page.text, target).toContain(`id="${hash.slice(1)}"`);
      }
    }
    expect(seen.size).toBeGreaterThan(codes.length);
  });
});

describe('GET /problems/{code}', () => {
  test('every code has a page that says its status and what to do', async () => {
    expect(codes.length).toBeGreaterThan(50);
    for (const code of codes) {
      const page = await call(`/problems/${code}`);
      expect([page.status, page.headers.get('content-type')], code).toEqual([200, 'text/html; charset=utf-8']);
      expect(page.text, code).toContain(code);
      expect(page.text, code).toMatch(/<dd>[45]\d\d<\/dd>/);
      expect(page.text, code).toContain('What to do');
      expectSafeHeaders(page.headers);
    }
  });

  test.each(['nothing', '__proto__', 'constructor', 'toString', '%3Cscript%3E', 'Internal', `${'x'.repeat(400)}`])('%s has none', async (code) => {
    const page = await call(`/problems/${code}`);
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(page.text).not.toContain('<script>');
    expectSafeHeaders(page.headers);
  });

  test('is where the type of a refusal leads', async () => {
    const { type } = (await call('/api/share/shr_unknown')).json;
    expect((await call(type)).text).toContain('share_not_found_or_expired');
  });
});

describe('GET /.well-known/jwks.json', () => {
  test('has the keys that plans are signed with, and no private part', async () => {
    const { keys } = (await must('/.well-known/jwks.json')).json;
    for (const key of keys) expect(key).toEqual({ kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: expect.any(String), alg: 'EdDSA', use: 'sig' });
    const [head = '', claims = '', signature = ''] = (await plan({ filename: 'a.txt', size: 1 })).plan.split('.');
    const { alg, kid } = JSON.parse(Buffer.from(head, 'base64url').toString());
    expect(alg).toBe('EdDSA');
    const key = createPublicKey({ key: keys.find((one: { kid: string }) => one.kid === kid), format: 'jwk' });
    expect(verify(null, Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))).toBe(true);
    expect(verify(null, Buffer.from(`${head}.${claims}x`), key, Buffer.from(signature, 'base64url'))).toBe(false);
  });
});

describe('what no route serves', () => {
  test.each(['/api', '/api/', '/api/nothing', '/favicon.ico', '/.git/config', '/.env', '//', '/docs/', '/api/share', '/api/share/a/b', '/s', '/assets/../package.json', '/assets/%2e%2e/page.css', '/__proto__', '/%00', '/api/groups'])(
    'GET %s answers route_not_found', async (path) => {
      expectRefusal(await call(`${baseUrl}${path}`), 404, 'route_not_found');
    });

  test.each([
    ['POST', '/healthz', 'GET'], ['DELETE', '/api/transfer-plan', 'POST'], ['POST', '/api/share/shr_abc', 'DELETE, GET, PATCH'], ['PUT', '/api/owner/session', 'DELETE, GET, POST'], ['PATCH', '/api/dl/trf_abc', 'DELETE, GET, HEAD'],
    ['GET', '/api/lane/single/pln_abc', 'PUT'], ['PUT', '/api/agent/keys', 'GET, POST'], ['GET', '/api/agent/keys/abc', 'DELETE'], ['POST', '/api/audit', 'GET'], ['POST', '/docs', 'GET'], ['OPTIONS', '/api/audit', 'GET'],
    ['POST', '/s/shr_abc', 'GET'], ['GET', '/api/agent/auth', 'POST'], ['GET', '/api/agent/grants', 'POST'], ['PROPFIND', '/api/audit', 'GET'], ['TRACE', '/healthz', 'GET'],
  ])('%s %s answers method_not_allowed and allows %s', async (method, path, allowed) => {
    const { status, headers } = await byMethod(new URL(path, baseUrl), method);
    expect([status, headers.get('allow')]).toEqual([405, allowed]);
    expectSafeHeaders(headers);
    if (!['TRACE', 'PROPFIND'].includes(method)) expectRefusal(await call(path, { method }), 405, 'method_not_allowed');
  });
});

describe('headers of every answer', () => {
  test('are safe on JSON, refusals, pages, assets, bytes and 304', async () => {
    const { downloadUrl, shareUrl } = await upload('<script>alert(1)</script>', { filename: 'a.html', mimeType: 'text/html' });
    const bytes = await call(downloadUrl);
    const answers = [
      bytes, await call('/healthz'), await call('/openapi.json'), await call('/nothing'), await call('/api/audit'), await call('/', {}), await call('/docs'), await call(shareUrl), await call('/s/nothing'), await call('/assets/page.css'),
      await call(downloadUrl, { headers: { range: 'bytes=0-3' } }), await call(downloadUrl, { headers: { 'if-none-match': bytes.headers.get('etag')! } }), await call(downloadUrl, { headers: { range: 'bytes=99-' } }),
      await call('/api/owner/session', { json: owner }), await call('/api/share/%zz'), await call('/api/owner/session', { body: '{', headers: { 'content-type': 'application/json' } }), await byMethod(downloadUrl, 'HEAD'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 404, 401, 200, 200, 200, 404, 200, 206, 304, 416, 201, 400, 400, 200]);
    for (const { headers } of answers) expectSafeHeaders(headers);
    expect(bytes.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
    expect(bytes.headers.get('content-disposition')).toMatch(/^attachment;/);
  });

  test('a request that is not HTTP gets an answer that cannot be cached or sniffed', async () => {
    const [answer] = await sendRaw(baseUrl, 'NOT HTTP AT ALL\r\n\r\n');
    expect(answer).toMatchObject({ status: 400, headers: { 'connection': 'close', 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' } });
  });
});

describe('X-Request-Id', () => {
  test.each(['12345678', 'a'.repeat(64), 'A-Z_a.z-0123', '0af7651916cd43dd8448eb211c80319c'])('%s is taken over, into the answer and the problem', async (id) => {
    const answer = await call('/api/audit', { headers: { 'x-request-id': id } });
    expect([answer.headers.get('x-request-id'), answer.json.requestId]).toEqual([id, id]);
    expect((await call('/healthz', { headers: { 'x-request-id': id } })).headers.get('x-request-id')).toBe(id);
  });

  test.each(['', 'short', 'a'.repeat(65), 'with space', '<script>alert(1)</script>', '../../etc/passwd', 'a\tb-------', 'émile---', '12345678, 87654321'])('%s is replaced', async (id) => {
    const answer = await call('/api/audit', { headers: { 'x-request-id': id } });
    expect(answer.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{24}$/);
    expect(answer.json.requestId).toBe(answer.headers.get('x-request-id'));
  });

  test('two requests without one get two', async () => {
    const session = await signIn();
    const ids = [await call('/api/audit', { bearer: session }), await call('/healthz')].map(({ headers }) => headers.get('x-request-id'));
    expect(ids[0]).not.toBe(ids[1]);
  });
});
