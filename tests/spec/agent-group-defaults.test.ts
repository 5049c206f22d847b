/** A group's policy defaults in a creation request: `agentGroupId` (interface chapter: Agent group policy defaults). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';

const { call, must, signIn, makeOwner, makeAgent, plan, upload, grant } = sharedExchange();

let session: string;
let agent: Agent;
let agentGroupId: string;
beforeAll(async () => {
  session = await signIn();
  agent = await makeAgent(session);
  agentGroupId = await groupWith({ allowedAgentIds: [agent.agentId, 'second'], maxTtlSeconds: 600, maxUses: 3, metadata: { team: 'review', step: 'group' } });
});

const groupWith = async (policyDefaults: Record<string, unknown>, members: string[] = []) =>
  (await must('/api/agent/groups', { json: { name: 'n', members, policyDefaults: { mode: 'agent', ...policyDefaults } }, bearer: session })).json.group.id as string;
const ask = (fields: object, bearer?: string) => call('/api/transfer-plan', { json: { filename: 'a.txt', agentGroupId, ...fields }, bearer });
const releaseOf = async (fields: object, bearer = session) => {
  const answer = await ask(fields, bearer);
  expect(answer.status, answer.text).toBe(201);
  return answer.json.release;
};

describe('agentGroupId', () => {
  test('fills in the defaults of the group, for its owner and the owner’s agents', async () => {
    const filled = { mode: 'agent', allowedAgentIds: [agent.agentId, 'second'], maxUses: 3, ttl: 600, metadata: { team: 'review', step: 'group' } };
    expect(await releaseOf({})).toEqual(filled);
    expect(await releaseOf({}, agent.key)).toEqual(filled);
  });

  test('group defaults override the template, and explicit fields override both', async () => {
    expect(await releaseOf({ policyTemplateId: 'passcode-ready' })).toEqual({
      mode: 'agent', allowedAgentIds: [agent.agentId, 'second'], maxUses: 3, ttl: 600, metadata: { gate: 'passcode-ready', team: 'review', step: 'group' },
    });
    expect(await releaseOf({ policyTemplateId: 'public', ttl: 60, maxUses: 9, allowedAgentIds: ['third'], policyMetadata: { step: 'own' } })).toEqual({
      mode: 'agent', allowedAgentIds: ['third'], maxUses: 9, ttl: 60, metadata: { team: 'review', step: 'own' },
    });
    expect(await releaseOf({ authMode: 'open' })).toMatchObject({ mode: 'open', allowedAgentIds: [] });
  });

  test('a ttl beyond the group’s maxTtlSeconds is refused by name', async () => {
    expect(await releaseOf({ ttl: 600 })).toMatchObject({ ttl: 600 });
    expectRefusal(await ask({ ttl: 601 }, session), 400, 'invalid_request', 'ttl');
  });

  test('a group without allowed agents needs an explicit allow list, and a maxTtlSeconds under 30 makes no share', async () => {
    const empty = await groupWith({ allowedAgentIds: [] });
    expectRefusal(await ask({ agentGroupId: empty }, session), 400, 'invalid_request', 'allowedAgentIds');
    expect(await releaseOf({ agentGroupId: empty, allowedAgentIds: ['a'] })).toMatchObject({ mode: 'agent', allowedAgentIds: ['a'] });
    expectRefusal(await ask({ agentGroupId: await groupWith({ allowedAgentIds: ['a'], maxTtlSeconds: 29 }) }, session), 400, 'invalid_request', 'agentGroupId');
  });

  test('of an unknown group, or from somebody who is nobody’s agent, answers group_not_found', async () => {
    expectRefusal(await ask({ agentGroupId: 'agrp_000000000000000000000000' }, session), 404, 'group_not_found');
    expectRefusal(await ask({}), 404, 'group_not_found');
    expectRefusal(await call('/api/upload/multipart/init', { json: { filename: 'a', size: 1, agentGroupId } }), 404, 'group_not_found');
    expectRefusal(await ask({ agentGroupId: 'shr_000000000000000000000000' }, session), 400, 'invalid_request', 'agentGroupId');
  });

  test('of another owner’s group answers group_not_found', async () => {
    const other = await makeOwner(session);
    expectRefusal(await ask({}, other.session), 404, 'group_not_found');
    expectRefusal(await ask({}, (await makeAgent(other.session)).key), 404, 'group_not_found');
  });

  test('a planned upload makes a share with the defaults, which the allowed agents fetch', async () => {
    const { id, shareId, downloadUrl } = await upload('for the group', { agentGroupId }, session);
    const { policy } = (await must(`/api/share/${shareId}`, { bearer: agent.key })).json;
    expect(policy).toMatchObject({ mode: 'agent', allowedAgentIds: [agent.agentId, 'second'], maxUses: 3, metadata: { team: 'review', step: 'group' } });
    const fetched = await call(downloadUrl, { headers: { 'x-access-grant': await grant(shareId, agent.key) } });
    expect(fetched.text).toBe('for the group');
    expect(id).toMatch(/^trf_/);
  });

  test('multipart init takes it without a plan, and with a plan that was made for the same group', async () => {
    const init = (json: object, headers: Record<string, string> = {}) => call('/api/upload/multipart/init', { json: { filename: 'a.txt', size: 5, ...json }, headers, bearer: session });
    expect((await init({ agentGroupId })).status).toBe(201);
    const planned = await plan({ filename: 'a.txt', size: 5, lane: 'multipart', agentGroupId }, session);
    expect((await init({ agentGroupId }, { 'x-transfer-plan': planned.plan })).status).toBe(201);
    const without = await plan({ filename: 'a.txt', size: 5, lane: 'multipart' }, session);
    expectRefusal(await init({ agentGroupId }, { 'x-transfer-plan': without.plan }), 403, 'plan_mismatch', 'agentGroupId');
  });

  test('a repeated plan request has its first answer, also when the group changed or is gone', async () => {
    const id = await groupWith({ allowedAgentIds: ['a'] });
    const request = () => call('/api/transfer-plan', { json: { filename: 'a', agentGroupId: id, operationId }, bearer: session });
    const operationId = randomUUID();
    const first = await request();
    await must(`/api/agent/groups/${id}`, { method: 'DELETE', bearer: session });
    expect((await request()).json).toEqual(first.json);
  });
});

describe('a change of a group', () => {
  test('leaves existing shares alone', async () => {
    const [first, second] = [await makeAgent(session), await makeAgent(session)];
    const id = await groupWith({ allowedAgentIds: [first.agentId], maxUses: 2 }, [first.agentId]);
    const { shareId } = await upload('as it was', { agentGroupId: id }, session);
    const resolve = (key: string) => call(`/api/share/${shareId}`, { bearer: key });
    const before = (await resolve(first.key)).json;

    const steps: [string, string, unknown?][] = [
      ['PATCH', `/api/agent/groups/${id}`, { policyDefaults: { mode: 'agent', allowedAgentIds: [first.agentId, second.agentId], maxUses: 9, metadata: { new: 'label' } } }],
      ['POST', `/api/agent/groups/${id}/members`, { agentId: second.agentId }],
      ['DELETE', `/api/agent/groups/${id}/members/${first.agentId}`],
      ['DELETE', `/api/agent/groups/${id}`],
    ];
    for (const [method, path, json] of steps) {
      await must(path, { method, json, bearer: session });
      expect((await resolve(first.key)).json).toEqual(before);
      expectRefusal(await resolve(second.key), 403, 'agent_not_allowed_for_share');
    }
    expect(await grant(shareId, first.key)).toMatch(/^agrt_/);
  });
});
