/** Owners beyond the first (interface chapter: Authentication), and what one owner sees of another: nothing. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';

const exchange = sharedExchange();
const { call, must, upload, makeAgent, makeOwner, events } = exchange;
let session: string;
beforeAll(async () => { session = await exchange.signIn(); });

const account = (facts: object = {}) => ({ email: `${randomUUID()}@example.com`, password: 'long enough to hash', ...facts });

describe('POST /api/owner/accounts', () => {
  test('an admin owner makes an owner, who can sign in and is not an admin', async () => {
    const json = account();
    const made = await call('/api/owner/accounts', { bearer: session, json });
    expect(made.status).toBe(201);
    expect(made.json.owner).toEqual({ id: expect.stringMatching(/^own_/), email: json.email, admin: false });
    const signedIn = await must('/api/owner/session', { json });
    expect(signedIn.json.owner).toEqual(made.json.owner);
    expect(made.text).not.toContain(json.password);
    expect(await events(session, { eventType: 'owner.created', targetId: made.json.owner.id })).toHaveLength(1);
  });

  test('an e-mail belongs to one owner, however it is written', async () => {
    const json = account();
    await must('/api/owner/accounts', { bearer: session, json });
    const again = await call('/api/owner/accounts', { bearer: session, json: { ...json, email: json.email.toUpperCase() } });
    expect([again.status, again.json.code]).toEqual([409, 'owner_email_taken']);
  });

  test('only an owner marked admin may: others are forbidden, nobody is asked to sign in', async () => {
    const other = await makeOwner(session);
    const refused = await call('/api/owner/accounts', { bearer: other.session, json: account() });
    expect([refused.status, refused.json.code]).toEqual([403, 'forbidden']);
    const anonymous = await call('/api/owner/accounts', { json: account() });
    expect([anonymous.status, anonymous.json.code]).toEqual([401, 'owner_auth_required']);
    const admin = await makeOwner(session, { admin: true });
    expect((await call('/api/owner/accounts', { bearer: admin.session, json: account() })).status).toBe(201);
  });

  test.each([
    ['email', { email: 'nobody' }],
    ['password', { password: 'short' }],
    ['admin', { admin: 'yes' }],
    ['role', { role: 'x' }],
  ])('a bad %s is named', async (path, facts) => {
    const refused = await call('/api/owner/accounts', { bearer: session, json: account(facts) });
    expect(refused.json).toMatchObject({ code: 'invalid_request', errors: [{ path }] });
  });
});

describe('another owner', () => {
  test('sees no event, deletes no transfer and goes on with no upload that is not theirs', async () => {
    const other = await makeOwner(session);
    const agent = await makeAgent(other.session);
    const sent = await upload('mine', {}, session);
    await events(session, { shareId: sent.shareId });
    expect((await must(`/api/audit?shareId=${sent.shareId}`, { bearer: other.session })).json.events).toEqual([]);
    for (const bearer of [other.session, agent.key]) {
      const refused = await call(`/api/dl/${sent.id}`, { method: 'DELETE', bearer });
      expect([refused.status, refused.json.code]).toEqual([401, 'delete_token_required']);
    }
    const { uploadId } = (await must('/api/upload/multipart/init', { bearer: session, json: { filename: 'a', size: 1 } })).json;
    for (const bearer of [other.session, agent.key]) {
      const status = await call(`/api/upload/multipart/status?uploadId=${uploadId}`, { bearer });
      expect([status.status, status.json.code]).toEqual([403, 'forbidden']);
    }
    expect((await call(sent.downloadUrl)).text).toBe('mine');
  });
});

describe('DELETE /api/dl/{id}', () => {
  test('the delete token is enough, whatever else is sent beside it', async () => {
    const sent = await upload('gone', {}, session);
    const deleted = await call(`/api/dl/${sent.id}`, { method: 'DELETE', bearer: 'aat_of-no-use-here', headers: { 'x-delete-token': sent.deleteToken } });
    expect([deleted.status, deleted.json]).toEqual([200, { id: sent.id, deleted: true }]);
  });
});
