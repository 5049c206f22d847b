/** Deleting a transfer before its expiry: who may, and what is gone then (interface chapter: Transfer bytes). */
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent, type Uploaded } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { MiB, multipartLane, partsOf } from '../support/multipart-lane.ts';
import { sha256Of } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';
import { beginDownload } from '../support/unruly-client.ts';

const exchange = sharedExchange();
const { call, must, upload } = exchange;
const lane = multipartLane(exchange);
let session: string;
let agent: Agent;
let stranger: Agent;

beforeAll(async () => {
  session = await exchange.signIn();
  agent = await exchange.makeAgent(session);
  stranger = await exchange.makeAgent(session);
});

const remove = (id: string, { token, bearer }: { token?: string; bearer?: string } = {}) =>
  call(`/api/dl/${id}`, { method: 'DELETE', bearer, headers: token === undefined ? {} : { 'X-Delete-Token': token } });

describe('DELETE /api/dl/{id}', () => {
  test('deletes with the delete token, and again answers the same', async () => {
    const { id, deleteToken } = await upload('x');
    for (const _time of [1, 2, 3]) {
      const { status, json } = await remove(id, { token: deleteToken });
      expect({ status, json }).toEqual({ status: 200, json: { id, deleted: true } });
    }
  });

  test('without a token or a credential that counts, asks for the token', async () => {
    const anonymous = await upload('x');
    const [owners, agents] = [await upload('x', {}, session), await upload('x', {}, agent.key)];
    expectRefusal(await remove(anonymous.id), 401, 'delete_token_required');
    expectRefusal(await remove(anonymous.id, { bearer: session }), 401, 'delete_token_required');
    expectRefusal(await remove(anonymous.id, { bearer: agent.key }), 401, 'delete_token_required');
    expectRefusal(await remove(owners.id), 401, 'delete_token_required');
    expectRefusal(await remove(owners.id, { bearer: agent.key }), 401, 'delete_token_required');
    expectRefusal(await remove(agents.id, { bearer: stranger.key }), 401, 'delete_token_required');
    for (const { downloadUrl } of [anonymous, owners, agents]) expect((await call(downloadUrl)).status).toBe(200);
  });

  test('a token that does not match is refused, whoever sends it', async () => {
    const [one, two] = [await upload('x', {}, session), await upload('x', {}, session)];
    const flipped = one.deleteToken.slice(0, -5) + (one.deleteToken.at(-5) === 'A' ? 'B' : 'A') + one.deleteToken.slice(-4);
    for (const token of [two.deleteToken, flipped, `${one.deleteToken}x`, one.deleteToken.slice(0, -1), one.deleteToken.toUpperCase(), 'dlt_', 'x', one.id, '']) {
      for (const bearer of [undefined, session, agent.key]) expectRefusal(await remove(one.id, { token, ...(bearer && { bearer }) }), 403, 'invalid_delete_token');
    }
    expect((await call(one.downloadUrl)).status).toBe(200);
    expect((await remove(one.id, { token: one.deleteToken })).status).toBe(200);
  });

  test('the token belongs in its header', async () => {
    const { id, deleteToken } = await upload('x');
    expectRefusal(await call(`/api/dl/${id}?deleteToken=${deleteToken}`, { method: 'DELETE' }), 400, 'invalid_request', 'deleteToken');
    expectRefusal(await remove(id, { bearer: deleteToken }), 401, 'invalid_agent_credential');
  });

  test('owners delete what they and their agents made', async () => {
    for (const bearer of [session, agent.key]) {
      const { id, downloadUrl } = await upload('x', {}, bearer);
      expect((await remove(id, { bearer: session })).json).toEqual({ id, deleted: true });
      expectRefusal(await call(downloadUrl), 404, 'share_not_found_or_expired');
    }
  });

  test('an agent deletes what it made', async () => {
    const { id } = await upload('x', { allowedAgentIds: [stranger.agentId] }, agent.key);
    expectRefusal(await remove(id, { bearer: stranger.key }), 401, 'delete_token_required');
    expect((await remove(id, { bearer: agent.key })).status).toBe(200);
  });

  test('a credential that is sent must be good', async () => {
    const { id, deleteToken } = await upload('x', {}, agent.key);
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: agent.key })).json;
    for (const bearer of ['garbage', `${agent.key}x`, accessToken as string]) expectRefusal(await remove(id, { bearer }), 401, 'invalid_agent_credential');
    expectRefusal(await remove(id, { bearer: `${session}x` }), 401, 'invalid_owner_credential');
    expect((await remove(id, { token: deleteToken })).status).toBe(200);
  });

  test('a transfer that does not exist is told to nobody but callers with a credential', async () => {
    expectRefusal(await remove('trf_doesnotexist'), 401, 'delete_token_required');
    expectRefusal(await remove('trf_doesnotexist', { token: 'dlt_x.y' }), 403, 'invalid_delete_token');
    for (const bearer of [session, agent.key]) expectRefusal(await remove('trf_doesnotexist', { bearer }), 404, 'transfer_not_found');
  });

  test('afterwards nothing of it is left to find', async () => {
    for (const stored of [await upload('x', { allowedAgentIds: [agent.agentId] }, session), await lane.store(partsOf(2, 10), { allowedAgentIds: [agent.agentId] }, { bearer: session })]) {
      const grant = await exchange.grant(stored.shareId, agent.key);
      await must(`/api/dl/${stored.id}`, { method: 'DELETE', bearer: session });
      expect((await headOf(exchange, `/api/dl/${stored.id}`)).status).toBe(404);
      expectRefusal(await call(`/api/share/${stored.shareId}`, { bearer: agent.key }), 404, 'share_not_found_or_expired');
      expectRefusal(await call('/api/agent/grants', { bearer: agent.key, json: { shareId: stored.shareId } }), 404, 'share_not_found_or_expired');
      expectRefusal(await call(stored.downloadUrl), 404, 'share_not_found_or_expired');
      expectRefusal(await call(stored.downloadUrl, { headers: { Range: 'bytes=0-1' } }), 404, 'share_not_found_or_expired');
      expectRefusal(await call(`/api/dl/${stored.id}`), 404, 'transfer_not_found');
      expectRefusal(await call(`/api/dl/${stored.id}`, { headers: { 'X-Access-Grant': grant } }), 404, 'share_not_found_or_expired');
      expect((await call(`/s/${stored.shareId}`)).status).toBe(404);
    }
  });

  test('the deletion is in the audit record, once', async () => {
    const { id, shareId } = await upload('x', {}, session);
    await Promise.all([1, 2, 3].map(() => remove(id, { bearer: session })));
    await remove(id, { bearer: session });
    expect(await exchange.events(session, { eventType: 'share.ended', shareId })).toHaveLength(1);
    expect(await exchange.events(session, { eventType: 'transfer.deleted', targetId: id })).toMatchObject([{ actor: { type: 'owner' }, targetType: 'file', shareId }]);
  });

  test.each<[string, (bytes: Buffer) => Promise<Uploaded>]>([
    ['one file', (bytes) => upload(bytes)],
    ['parts', (bytes) => lane.store([0, 1, 2].map((index) => bytes.subarray(index * 16 * MiB, (index + 1) * 16 * MiB)), { partSize: 16 * MiB })],
  ])('a download that runs while its transfer is deleted ends normally: %s', async (_case, store) => {
    const bytes = randomBytes(48 * MiB);
    const stored = await store(bytes);
    const download = await beginDownload(stored.downloadUrl);
    expect(download.statusCode).toBe(200);
    expect((await remove(stored.id, { token: stored.deleteToken })).status).toBe(200);
    expectRefusal(await call(stored.downloadUrl), 404, 'share_not_found_or_expired');

    const hash = createHash('sha256');
    for await (const chunk of download) hash.update(chunk as Buffer);
    expect({ complete: download.complete, sha256: hash.digest('hex') }).toEqual({ complete: true, sha256: sha256Of(bytes) });
  });
});
