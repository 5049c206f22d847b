/** POST /api/import-url: the exchange fetches a URL and makes it an ordinary share (interface chapter: Transfer plan and creation). */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDnsServer, type DnsServer } from '../support/dns-server.ts';
import type { Answer, Exchange } from '../support/exchange.ts';
import { importer, startImporting } from '../support/importing.ts';
import type { OwnStack } from '../support/own-stack.ts';
import { sha256Of } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';
import { behind, publicAddress, startSourceServer, type Page, type SourceServer } from '../support/source-server.ts';

const large = randomBytes(700_000);
/** A page of given headers. */
const said = (headers: Record<string, string>, body: string | Buffer = 'body'): Page => (_request, response) => response.writeHead(200, headers).end(body);

const pages: Record<string, Page> = {
  large: said({ 'content-type': 'application/x-large' }, large),
  empty: said({ 'content-length': '0' }, ''),
  chunked: (_request, response) => {
    for (let at = 0; at < large.length; at += 50_000) response.write(large.subarray(at, at + 50_000));
    response.end();
  },
  disposed: said({ 'content-disposition': 'attachment; filename="plain.txt"; filename*=UTF-8\'\'na%C3%AFve%20file.txt', 'content-type': 'text/plain; charset=utf-8' }),
  hostile: said({ 'content-disposition': 'attachment; filename="../../etc/pa\\"sswd"', 'content-type': 'text/html; =' }),
  cookie: (_request, response) => response.writeHead(302, { location: `http://other.test:${source.port}/text`, 'set-cookie': 'session=secret' }).end(),
};

let dns: DnsServer;
let own: OwnStack;
let exchange: Exchange;
let source: SourceServer;
let session: string;
let send: ReturnType<typeof importer>;
beforeAll(async () => {
  dns = await startDnsServer({ 'files.test': [publicAddress], 'other.test': [publicAddress] });
  [source, own] = await Promise.all([startSourceServer(pages), startImporting(dns.address)]);
  ({ exchange } = own);
  session = await exchange.signIn();
  send = importer(exchange);
});
afterAll(async () => {
  source.close();
  dns.close();
  await own.remove();
});

async function resolve(made: Answer): Promise<Record<string, any>> {
  expect([made.status, made.text]).toEqual([201, expect.stringContaining('shareId')]);
  return (await exchange.must(`/api/share/${made.json.shareId}`)).json as Record<string, any>;
}

describe('POST /api/import-url', () => {
  test('answers 201 with the upload response of an ordinary share', async () => {
    const made = await send(source.url('/text'), {}, { bearer: session });
    expect(await resolve(made)).toMatchObject({ type: 'file', filename: 'text', mimeType: 'text/plain', size: 13, policy: { mode: 'open', allowedAgentIds: [] } });
    expect(made.json).toEqual({
      id: expect.stringMatching(/^trf_/), shareId: expect.stringMatching(/^shr_/), shareUrl: `${exchange.baseUrl}/s/${made.json.shareId}`,
      downloadUrl: `${exchange.baseUrl}/api/dl/${made.json.id}?share_id=${made.json.shareId}`, expiresAt: expect.any(String), deleteToken: expect.stringMatching(/^dlt_/),
    });
    expect((await exchange.must(made.json.downloadUrl)).text).toBe('imported text');
    await exchange.must(`/api/dl/${made.json.id}`, { method: 'DELETE', headers: { 'x-delete-token': made.json.deleteToken } });
    expectRefusal(await exchange.call(made.json.downloadUrl), 404, 'share_not_found_or_expired');
  });

  test.each(['/large', '/chunked'])('stores %s byte for byte', async (path) => {
    const made = await send(source.url(path));
    expect(await resolve(made)).toMatchObject({ size: large.length });
    expect(sha256Of((await exchange.must(made.json.downloadUrl)).bytes)).toBe(sha256Of(large));
  });

  test('stores an empty body', async () => {
    expect(await resolve(await send(source.url('/empty')))).toMatchObject({ size: 0, mimeType: 'application/octet-stream' });
  });

  test('every policy field works as on the other creation routes', async () => {
    const fields = { ttl: 60, maxUses: 2, authMode: 'agent', allowedAgentIds: ['reader'], policyMetadata: { step: 'one' } };
    const made = await send(source.url('/text'), fields, { bearer: session });
    const agent = await exchange.makeAgent(session, 'reader');
    const { policy } = (await exchange.must(`/api/share/${made.json.shareId}`, { bearer: agent.key })).json;
    expect(policy).toMatchObject({ mode: 'agent', allowedAgentIds: ['reader'], maxUses: 2, metadata: { step: 'one' } });
    expect(Date.parse(made.json.expiresAt) - Date.now()).toBeLessThanOrEqual(60_000);
    const once = await resolve(await send(source.url('/text'), { policyTemplateId: 'public-once' }));
    expect(once['policy']).toMatchObject({ mode: 'open', maxUses: 1 });
    const locked = await send(source.url('/text'), { passcode: 'open sesame' });
    expectRefusal(await exchange.call(locked.json.downloadUrl), 401, 'passcode_required');
    expect((await exchange.must(locked.json.downloadUrl, { headers: { 'x-share-passcode': 'open sesame' } })).text).toBe('imported text');
  });

  test('an agent’s import belongs to the agent and its owner', async () => {
    const agent = await exchange.makeAgent(session);
    const made = await send(source.url('/text'), {}, { bearer: agent.key });
    expect(await resolve(made)).toMatchObject({ createdByAgentId: agent.agentId, createdByUserId: expect.stringMatching(/^own_/) });
  });
});

describe('name and type', () => {
  test('those of the request win over those of the response', async () => {
    expect(await resolve(await send(source.url('/disposed'), { filename: 'mine.bin', mimeType: 'application/mine' }))).toMatchObject({ filename: 'mine.bin', mimeType: 'application/mine' });
    expect(await resolve(await send(source.url('/disposed'), { filename: 'mine.bin' }))).toMatchObject({ filename: 'mine.bin', mimeType: 'text/plain; charset=utf-8' });
    expect(await resolve(await send(source.url('/disposed'), { mimeType: 'application/mine' }))).toMatchObject({ filename: 'naïve file.txt', mimeType: 'application/mine' });
  });

  test.each([
    ['/disposed', 'naïve file.txt', 'text/plain; charset=utf-8'],
    ['/hostile', '.._.._etc_pa"sswd', 'text/html'],
    ['/large/deep/caf%C3%A9%20menu.pdf?query=1#part', 'café menu.pdf', 'application/x-large'],
    ['/large/', 'download', 'application/x-large'],
    ['/large/%2e%2e%2fup', '.._up', 'application/x-large'],
    ['/large/%zz', '%zz', 'application/x-large'],
    [`/large/${encodeURIComponent('é'.repeat(200))}`, 'é'.repeat(127), 'application/x-large'],
  ])('%s is stored as %s', async (path, filename, mimeType) => {
    expect(await resolve(await send(source.url(path)))).toMatchObject({ filename, mimeType });
  });

  test('are those of the last hop', async () => {
    expect(await resolve(await send(source.url(behind(2, '/large/last.bin'))))).toMatchObject({ filename: 'last.bin', mimeType: 'application/x-large' });
  });
});

describe('what is sent to the other server', () => {
  test('is a plain GET for the path and query, without a fragment, a credential or a coding', async () => {
    await send(`http://files.test:${source.port}/text?a=b%20c#d`, {}, { bearer: session, headers: { cookie: 'a=b', 'x-share-passcode': 'secret' } });
    const { method, url, headers } = source.requests.at(-1)!;
    expect({ method, url }).toEqual({ method: 'GET', url: '/text?a=b%20c' });
    expect(headers).toEqual({ host: `files.test:${source.port}`, 'user-agent': expect.stringMatching(/^asset-exchange\//), accept: '*/*', 'accept-encoding': 'identity', connection: 'close' });
  });

  test('carries nothing from one host to the next', async () => {
    expect((await send(`http://files.test:${source.port}/cookie`)).status).toBe(201);
    const { headers } = source.requests.at(-1)!;
    expect(headers.host).toBe(`other.test:${source.port}`);
    expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
  });
});

describe('before anything is fetched', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ ttl: 29 }, 'ttl'], [{ maxUses: 0 }, 'maxUses'], [{ authMode: 'closed' }, 'authMode'], [{ allowedAgentIds: 'a,b' }, 'allowedAgentIds'],
    [{ policyTemplateId: 'secret' }, 'policyTemplateId'], [{ policyMetadata: { a: 1 } }, 'policyMetadata.a'], [{ filename: 'a/b' }, 'filename'], [{ mimeType: 'text' }, 'mimeType'],
    [{ ttl: 9_999_999 }, 'ttl'], [{ authMode: 'agent' }, 'allowedAgentIds'], [{ size: 1 }, 'size'], [{ lane: 'single' }, 'lane'], [{ described: { filename: 'a' } }, 'described'], [{ describedBySource: true }, 'describedBySource'],
    [{ maxBytes: 1 }, 'maxBytes'], [{ source: 'a'.repeat(64) }, 'source'],
  ])('%j answers invalid_request', async (fields, field) => {
    const before = source.requests.length;
    expectRefusal(await send(source.url('/text'), fields, { bearer: session }), 400, 'invalid_request', field);
    expect(source.requests.length).toBe(before);
  });

  test('a group that is not there and a bad credential are refused', async () => {
    const before = source.requests.length;
    expectRefusal(await send(source.url('/text'), { agentGroupId: 'agrp_absent' }, { bearer: session }), 404, 'group_not_found');
    expectRefusal(await send(source.url('/text'), {}, { bearer: 'agk_no.body' }), 401, 'invalid_agent_credential');
    expect(source.requests.length).toBe(before);
  });

  test('no request but the importer’s own lets the source describe the file', async () => {
    expectRefusal(await exchange.call('/api/transfer-plan', { json: { filename: 'a', describedBySource: true } }), 400, 'invalid_request', 'describedBySource');
    const planned = await exchange.plan({ filename: 'a', size: 1 });
    expectRefusal(await exchange.call(`${planned.upload.url}?described=a`, { method: 'PUT', headers: planned.upload.headers, body: 'x' }), 400, 'invalid_request', 'described');
  });
});
