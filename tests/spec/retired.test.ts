/** The retired upload surfaces: every method answers 410 and says where to go (interface chapter: Endpoints, Retirement). */
import { describe, expect, test } from 'vitest';
import { byMethod } from '../support/any-method.ts';
import { sharedExchange } from '../support/exchange.ts';
import { sendRaw } from '../support/raw-http.ts';
import { expectRefusal } from '../support/refusals.ts';

const { baseUrl, call, plan } = sharedExchange();

const paths = [
  '/api/upload', '/api/upload/', '/api/upload?ttl=60', '/api/upload/abc', '/api/upload/abc/def', '/api/upload/..%2fabc', '/api/upload/multipart', '/api/upload/multipart/', '/api/upload/multipart/unknown',
  '/api/tus', '/api/tus/', '/api/tus/24e533e02ec3bc40c387f1a0e460e216', '/api/tus/a/b/c',
];
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const rareMethods = ['PROPFIND', 'PROPPATCH', 'MKCOL', 'COPY', 'MOVE', 'LOCK', 'UNLOCK', 'TRACE', 'SEARCH', 'PURGE', 'REPORT', 'QUERY', 'LINK', 'SUBSCRIBE', 'MERGE', 'ACL', 'BIND'];

describe.each(paths)('the retired surface at %s', (path) => {
  test.each(methods)('%s answers transfer_surface_retired with the way out', async (method) => {
    const answer = await call(path, { method });
    expectRefusal(answer, 410, 'transfer_surface_retired');
    expect(answer.json.see).toEqual({ plan: `POST ${baseUrl}/api/transfer-plan`, docs: `${baseUrl}/docs/planned-upload` });
    expect(answer.json.detail).toContain('POST');
    expect(answer.json.detail).toContain('/api/transfer-plan');
    expect(answer.json.retryable).toBe(false);
  });

  test('HEAD answers 410 without a body', async () => {
    const { status, length } = await byMethod(new URL(path, baseUrl), 'HEAD');
    expect([status, length]).toEqual([410, 0]);
  });
});

describe('the retired surfaces', () => {
  test.each(rareMethods.flatMap((method): [string, string][] => [[method, '/api/upload'], [method, '/api/tus/abc']]))('%s %s answers 410', async (method, path) => {
    expect((await byMethod(new URL(path, baseUrl), method)).status).toBe(410);
  });

  test.each([
    ['a form', 'multipart/form-data; boundary=x', '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhello\r\n--x--\r\n'],
    ['a TUS chunk', 'application/offset+octet-stream', 'hello'],
    ['broken JSON', 'application/json', '{'],
    ['a type that nobody knows', 'x/y', 'hello'],
    ['no type', '', 'hello'],
  ])('%s as body answers 410, since nothing of it is wanted', async (_title, type, body) => {
    for (const path of ['/api/upload', '/api/tus', '/api/tus/abc']) {
      for (const method of ['POST', 'PATCH']) expectRefusal(await call(path, { method, body, headers: { 'content-type': type } }), 410, 'transfer_surface_retired');
    }
  });

  test('a sender is refused before it has sent its body', async () => {
    const [answer] = await sendRaw(baseUrl, 'POST /api/upload HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 2097152\r\n\r\n');
    expect([answer!.status, JSON.parse(answer!.body).code]).toEqual([410, 'transfer_surface_retired']);
  });

  test('a sender that expects 100-continue is refused at once', async () => {
    const [answer] = await sendRaw(baseUrl, 'PUT /api/upload HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n');
    expect(answer!.status).toBe(410);
  });

  test('the page that the answer points to exists, and the plan that it names can be had', async () => {
    const { see } = (await call('/api/upload', { method: 'POST' })).json;
    const page = await call(see.docs);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.text).toContain('/api/transfer-plan');
    expect((await plan({ filename: 'a.txt', size: 1 })).upload.url).toContain(baseUrl);
  });

  test.each(['/api/uploads', '/api/upload-x', '/api/tusk', '/API/UPLOAD'])('%s is no retired surface', async (path) => {
    expectRefusal(await call(path, { method: 'POST' }), 404, 'route_not_found');
  });
});

describe('the multipart lane below a retired surface', () => {
  const routes: [string, string][] = [['POST', 'init'], ['POST', 'part'], ['POST', 'complete'], ['POST', 'abort'], ['GET', 'status']];

  test.each(routes)('%s /api/upload/multipart/%s is alive', async (method, step) => {
    const answer = await call(`/api/upload/multipart/${step}`, { method, ...(method === 'POST' && step !== 'part' && { json: {} }) });
    expectRefusal(answer, 400, 'invalid_request');
  });

  test.each(routes.flatMap(([right, step]) => [...methods, 'HEAD'].filter((method) => method !== right).map((method) => [method, step, right])))(
    '%s /api/upload/multipart/%s answers method_not_allowed and allows %s', async (method, step, right) => {
      const { status, headers } = await byMethod(new URL(`/api/upload/multipart/${step}`, baseUrl), method!);
      expect([status, headers.get('allow')]).toEqual([405, right]);
      if (method !== 'HEAD') expectRefusal(await call(`/api/upload/multipart/${step}`, { method: method! }), 405, 'method_not_allowed');
    });
});
