/** Everything ends at its second: shares, plans, uploads, grants, access tokens (interface chapter: States and transitions). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Agent, Exchange, Uploaded } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { multipartLane, partsOf, type Begun } from '../support/multipart-lane.ts';
import { singleLane, type Planned } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';
import { startShortLived } from '../support/short-lived-exchange.ts';

const abc = Buffer.from('abc');
let exchange: Exchange;
let stop: () => Promise<void>;
let lane: ReturnType<typeof multipartLane>;
let session: string;
let reader: Agent;

/** What was made at the beginning and has ended when the tests begin. */
let open: Uploaded;
let large: Uploaded;
let forReader: Uploaded;
let forReaderLongLived: Uploaded;
let grants: { short: string; long: string };
let accessToken: string;
let upload: Begun;
let unused: Planned;
let unusedMultipart: Planned;
let begunUnderPlan: { planned: Planned; begun: Begun };

/** What the first share that ended answered at that very moment, before anything had time to sweep it. */
let atItsSecond: { resolve: number; fetch: number; head: number };

/** Waits until the last of these times has passed, and not longer. */
async function until(...times: string[]): Promise<void> {
  const last = Math.max(...times.map((time) => Date.parse(time)));
  while (Date.now() <= last) await new Promise((resolve) => setTimeout(resolve, last - Date.now() + 1));
}

beforeAll(async () => {
  ({ exchange, remove: stop } = await startShortLived());
  lane = multipartLane(exchange);
  session = await exchange.signIn();
  reader = await exchange.makeAgent(session);
  const allowedAgentIds = [reader.agentId];
  open = await exchange.upload('open', { ttl: 30 }, session);
  large = await lane.store(partsOf(2, 10), { ttl: 30 }, { bearer: session });
  forReader = await exchange.upload('x', { ttl: 30, allowedAgentIds }, session);
  forReaderLongLived = await exchange.upload('y', { allowedAgentIds }, session);
  const grant = async ({ shareId }: Uploaded) => (await exchange.must('/api/agent/grants', { bearer: reader.key, json: { shareId } })).json;
  const [short, long] = [await grant(forReader), await grant(forReaderLongLived)];
  grants = { short: short.accessToken, long: long.accessToken };
  const token = (await exchange.must('/api/agent/auth', { method: 'POST', bearer: reader.key })).json;
  accessToken = token.accessToken;
  upload = await lane.begin(3, {}, { bearer: session });
  await lane.part(upload.uploadId, 1, abc, { bearer: session });
  unused = await exchange.plan({ filename: 'a', size: 3, lane: 'single' });
  unusedMultipart = await exchange.plan({ filename: 'parts.bin', size: 3, lane: 'multipart' });
  const planned = await exchange.plan({ filename: 'parts.bin', size: 3, lane: 'multipart' });
  begunUnderPlan = { planned, begun: await lane.begin(3, {}, { plan: planned.plan }) };

  expect((await exchange.call(open.downloadUrl)).status).toBe(200);
  expect((await exchange.call(`/api/share/${forReader.shareId}`, { bearer: accessToken })).status).toBe(200);
  await until(open.expiresAt);
  const [resolved, fetched, head] = await Promise.all([exchange.call(`/api/share/${open.shareId}`), exchange.call(open.downloadUrl), headOf(exchange, open.downloadUrl)]);
  atItsSecond = { resolve: resolved.status, fetch: fetched.status, head: head.status };
  await until(
    large.expiresAt, forReader.expiresAt, long.expiresAt, token.expiresAt, upload.expiresAt, begunUnderPlan.begun.expiresAt,
    unused['expiresAt'] as string, unusedMultipart['expiresAt'] as string, planned['expiresAt'] as string,
  );
}, 120_000);

afterAll(async () => { await stop(); });

describe('a share past its expiry', () => {
  test('is gone at its very second', () => {
    expect(atItsSecond).toEqual({ resolve: 404, fetch: 404, head: 404 });
  });

  test('is gone for resolve, fetch, HEAD, grant and page', async () => {
    for (const stored of [open, large, forReader]) {
      expectRefusal(await exchange.call(`/api/share/${stored.shareId}`, { bearer: reader.key }), 404, 'share_not_found_or_expired');
      expectRefusal(await exchange.call(stored.downloadUrl), 404, 'share_not_found_or_expired');
      expectRefusal(await exchange.call(stored.downloadUrl, { headers: { Range: 'bytes=0-1' } }), 404, 'share_not_found_or_expired');
      expect((await headOf(exchange, stored.downloadUrl)).status).toBe(404);
      expect((await exchange.call(`/s/${stored.shareId}`)).status).toBe(404);
    }
    expectRefusal(await exchange.call('/api/agent/grants', { bearer: reader.key, json: { shareId: forReader.shareId } }), 404, 'share_not_found_or_expired');
  });

  test('a grant for it does not outlive it', async () => {
    const answer = await exchange.call(`/api/dl/${forReader.id}`, { headers: { 'X-Access-Grant': grants.short } });
    expect(['share_not_found_or_expired', 'invalid_grant']).toContain(answer.json.code);
  });

  test('its end is in the audit record, once for the transfer and once for the share', async () => {
    for (const { id, shareId } of [open, large, forReader]) {
      expect(await exchange.events(session, { eventType: 'transfer.expired', targetId: id })).toMatchObject([{ targetType: 'file', shareId, actor: { type: 'service' } }]);
      expect(await exchange.events(session, { eventType: 'share.expired', shareId })).toMatchObject([{ targetType: 'share', targetId: shareId, actor: { type: 'service' } }]);
    }
  });

  test('may still be deleted, which changes nothing', async () => {
    const { status, json } = await exchange.call(`/api/dl/${open.id}`, { method: 'DELETE', headers: { 'X-Delete-Token': open.deleteToken } });
    expect({ status, json }).toEqual({ status: 200, json: { id: open.id, deleted: true } });
  });
});

describe('a grant past its expiry', () => {
  test('is not valid, and a new one is', async () => {
    const fetchWith = (token: string) => exchange.call(`/api/dl/${forReaderLongLived.id}`, { headers: { 'X-Access-Grant': token } });
    expectRefusal(await fetchWith(grants.long), 403, 'invalid_grant');
    expect((await fetchWith(await exchange.grant(forReaderLongLived.shareId, reader.key))).text).toBe('y');
  });
});

describe('an access token past its expiry', () => {
  test('is not valid, and its key makes a new one', async () => {
    const resolve = (bearer: string) => exchange.call(`/api/share/${forReaderLongLived.shareId}`, { bearer });
    expectRefusal(await resolve(accessToken), 401, 'invalid_agent_credential');
    expect((await resolve((await exchange.must('/api/agent/auth', { method: 'POST', bearer: reader.key })).json.accessToken)).status).toBe(200);
  });
});

describe('a plan past its expiry', () => {
  test('begins no transfer, on either lane', async () => {
    const put = singleLane(exchange);
    for (const body of [abc, new Blob(['abc']).stream() as ReadableStream]) expectRefusal(await put(unused, body), 401, 'plan_expired');
    expectRefusal(await lane.init({ filename: 'parts.bin', size: 3 }, { plan: unusedMultipart.plan }), 401, 'plan_expired');
  });

  test('still shows an upload that was begun in time', async () => {
    const { planned, begun } = begunUnderPlan;
    expect((await lane.status(begun.uploadId, { plan: planned.plan })).json).toMatchObject({ uploadId: begun.uploadId, state: 'expired' });
  });
});

describe('a multipart upload past its expiry', () => {
  test('takes no part and no completion, says so, and may be aborted', async () => {
    const { uploadId, transferId } = upload;
    const sender = { bearer: session };
    expect((await lane.status(uploadId, sender)).json).toMatchObject({ state: 'expired', uploadId });
    expectRefusal(await lane.part(uploadId, 1, abc, sender), 410, 'upload_expired');
    expectRefusal(await lane.complete(uploadId, {}, sender), 410, 'upload_expired');
    expect((await lane.abort(uploadId, sender)).json).toEqual({ uploadId, state: 'expired' });
    expect((await headOf(exchange, `/api/dl/${transferId}`)).status).toBe(404);
    expect(await exchange.events(session, { eventType: 'upload.expired', targetId: transferId })).toMatchObject([{ actor: { type: 'service' }, data: { uploadId } }]);
  });
});
