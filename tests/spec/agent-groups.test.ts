/** Agent groups: an owner's named lists of agents with policy defaults (interface chapters: Agent group record, Agent groups). */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';

const { call, must, signIn, makeOwner, events } = sharedExchange();

let session: string;
let ownerId: string;
beforeAll(async () => {
  session = await signIn();
  ownerId = (await must('/api/owner/session', { bearer: session })).json.owner.id as string;
});

type Json = Record<string, unknown>;
interface Group { id: string; name: string; version: number; members: { agentId: string; role: string }[]; policyDefaults: { allowedAgentIds: string[] }; createdAt: string; updatedAt: string }

const path = (groupId: string) => `/api/agent/groups/${groupId}`;
const make = (json: unknown, headers: Record<string, string> = {}) => call('/api/agent/groups', { json, bearer: session, headers });
const newGroup = async (fields: Json = {}) => (await must('/api/agent/groups', { json: { name: 'reviewers', ...fields }, bearer: session })).json.group as Group;
const patch = (groupId: string, json: unknown, headers: Record<string, string> = {}) => call(path(groupId), { method: 'PATCH', json, bearer: session, headers });
const remove = (groupId: string, headers: Record<string, string> = {}) => call(path(groupId), { method: 'DELETE', bearer: session, headers });
const add = (groupId: string, json: unknown, headers: Record<string, string> = {}) => call(`${path(groupId)}/members`, { json, bearer: session, headers });
const dismiss = (groupId: string, agentId: string, headers: Record<string, string> = {}) =>
  call(`${path(groupId)}/members/${encodeURIComponent(agentId)}`, { method: 'DELETE', bearer: session, headers });
/** The group as the list shows it. */
const read = async (groupId: string) => ((await must('/api/agent/groups', { bearer: session })).json.groups as Group[]).find(({ id }) => id === groupId);

const ids = (count: number, prefix = 'agent') => Array.from({ length: count }, (_one, index) => `${prefix}-${index}`);
const defaults = (...allowedAgentIds: string[]) => ({ mode: 'agent', allowedAgentIds });
const unknown = 'agrp_000000000000000000000000';
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe('POST /api/agent/groups', () => {
  test('makes a group of agents, named by their ids or with their roles', async () => {
    const policyDefaults = { mode: 'agent', allowedAgentIds: ['a', 'c'], maxTtlSeconds: 3_600, maxUses: 2, metadata: { team: 'review' } };
    const answer = await make({ name: 'Reviewers', members: ['a', { agentId: 'b', role: 'manager' }, { agentId: 'c' }], policyDefaults });
    expect(answer.status).toBe(201);
    const member = (agentId: string, role: string) => ({ agentId, role, addedAt: time, addedByAgentId: null });
    expect(answer.json).toEqual({
      group: {
        id: expect.stringMatching(/^agrp_[A-Za-z0-9]{24}$/), ownerId, name: 'Reviewers',
        members: [member('a', 'member'), member('b', 'manager'), member('c', 'member')], policyDefaults,
        createdAt: time, updatedAt: time, createdByAgentId: null, version: 1,
      },
    });
    expect(await read(answer.json.group.id)).toEqual(answer.json.group);
  });

  test('needs a name only: without members and defaults there are none', async () => {
    expect(await newGroup({ name: 'n' })).toMatchObject({ members: [], policyDefaults: defaults(), version: 1 });
  });

  test.each<[string, Json]>([
    ['a name of 120 characters', { name: 'x'.repeat(120) }],
    ['100 members', { members: ids(100) }],
    ['no members', { members: [] }],
    ['100 allowed agents who are no members', { policyDefaults: defaults(...ids(100)) }],
    ['a maxTtlSeconds of 1', { policyDefaults: { ...defaults(), maxTtlSeconds: 1 } }],
    ['a maxTtlSeconds of 604800', { policyDefaults: { ...defaults(), maxTtlSeconds: 604_800 } }],
    ['a maxUses of 1', { policyDefaults: { ...defaults(), maxUses: 1 } }],
    ['empty metadata', { policyDefaults: { ...defaults(), metadata: {} } }],
  ])('%s is good', async (_title, fields) => {
    expect((await make({ name: 'n', ...fields })).status).toBe(201);
  });

  test.each<[string, Json, string]>([
    ['no name', { name: undefined }, 'name'], ['an empty name', { name: '' }, 'name'], ['a name of 121 characters', { name: 'x'.repeat(121) }, 'name'],
    ['U+0000 in the name', { name: 'a\u0000' }, 'name'], ['a lone surrogate in the name', { name: '\ud800' }, 'name'], ['a number as its name', { name: 5 }, 'name'],
    ['101 members', { members: ids(101) }, 'members'], ['a member that is no agent id', { members: ['a', 'a b'] }, 'members.1'],
    ['a member of another role', { members: [{ agentId: 'a', role: 'owner' }] }, 'members.0'], ['a member with another field', { members: [{ agentId: 'a', addedAt: 'now' }] }, 'members.0.addedAt'],
    ['null members', { members: null }, 'members'],
    ['another mode', { policyDefaults: { mode: 'open', allowedAgentIds: [] } }, 'policyDefaults.mode'],
    ['defaults without a mode', { policyDefaults: { allowedAgentIds: [] } }, 'policyDefaults.mode'],
    ['defaults without an allow list', { policyDefaults: { mode: 'agent' } }, 'policyDefaults.allowedAgentIds'],
    ['101 allowed agents', { policyDefaults: defaults(...ids(101)) }, 'policyDefaults.allowedAgentIds'],
    ['a maxTtlSeconds of 0', { policyDefaults: { ...defaults(), maxTtlSeconds: 0 } }, 'policyDefaults.maxTtlSeconds'],
    ['a maxTtlSeconds of 604801', { policyDefaults: { ...defaults(), maxTtlSeconds: 604_801 } }, 'policyDefaults.maxTtlSeconds'],
    ['a maxTtlSeconds of 1.5', { policyDefaults: { ...defaults(), maxTtlSeconds: 1.5 } }, 'policyDefaults.maxTtlSeconds'],
    ['a maxUses of 0', { policyDefaults: { ...defaults(), maxUses: 0 } }, 'policyDefaults.maxUses'],
    ['metadata that is no text', { policyDefaults: { ...defaults(), metadata: { a: 1 } } }, 'policyDefaults.metadata.a'],
    ['17 labels', { policyDefaults: { ...defaults(), metadata: Object.fromEntries(ids(17).map((id) => [id, ''])) } }, 'policyDefaults.metadata'],
    ['an unknown field', { version: 7 }, 'version'], ['an unknown default', { policyDefaults: { ...defaults(), ttl: 60 } }, 'policyDefaults.ttl'],
  ])('%s answers invalid_request', async (_title, fields, field) => {
    expectRefusal(await make({ name: 'n', ...fields }), 400, 'invalid_request', field);
  });

  test('an agent that is named twice is one member; with two roles the request is refused', async () => {
    const { members, policyDefaults } = await newGroup({ members: ['a', { agentId: 'a', role: 'member' }, 'b', 'a'], policyDefaults: defaults('b', 'b') });
    expect(members.map(({ agentId }) => agentId)).toEqual(['a', 'b']);
    expect(policyDefaults.allowedAgentIds).toEqual(['b']);
    expectRefusal(await make({ name: 'n', members: ['a', 'b', { agentId: 'a', role: 'manager' }] }), 400, 'invalid_request', 'members.2');
  });

  test('the same Idempotency-Key and request makes one group and answers the same, also after a change', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const name = `once ${randomUUID()}`;
    const answers = await Promise.all(Array.from({ length: 6 }, () => make({ name }, headers)));
    const { group } = answers[0]!.json;
    await patch(group.id, { name: `${name} changed` });
    answers.push(await make({ name }, headers));
    for (const { status, json } of answers) expect([status, json]).toEqual([201, { group }]);
    const { groups } = (await must('/api/agent/groups', { bearer: session })).json;
    expect(groups.filter((one: Group) => one.name.startsWith(name))).toHaveLength(1);
    expectRefusal(await make({ name: 'other' }, headers), 422, 'idempotency_key_reused');
  });
});

describe('GET /api/agent/groups', () => {
  test('lists groups newest first and counts them', async () => {
    const older = await newGroup();
    const newer = await newGroup();
    const { status, json } = await call('/api/agent/groups?limit=2', { bearer: session });
    expect(status).toBe(200);
    expect(json).toEqual({ count: 2, groups: [newer, older] });
  });

  test.each(['1', '200'])('limit %s is good', async (limit) => {
    const { json } = await must(`/api/agent/groups?limit=${limit}`, { bearer: session });
    expect(json.count).toBe(json.groups.length);
    expect(json.count).toBeLessThanOrEqual(Number(limit));
  });

  test.each(['0', '201', 'abc', '-1', '1.5', '', '1000000000'])('limit %s answers invalid_request', async (limit) => {
    expectRefusal(await call(`/api/agent/groups?limit=${limit}`, { bearer: session }), 400, 'invalid_request', 'limit');
  });
});

describe('PATCH /api/agent/groups/{groupId}', () => {
  test('changes name and policyDefaults, as a whole, and nothing else', async () => {
    const group = await newGroup({ members: ['a'], policyDefaults: { ...defaults('a'), maxUses: 3, metadata: { step: 'one' } } });
    const renamed = await patch(group.id, { name: 'writers' });
    expect(renamed.status).toBe(200);
    expect(renamed.json).toEqual({ group: { ...group, name: 'writers', version: 2, updatedAt: time } });
    const changed = await patch(group.id, { policyDefaults: defaults('a', 'b') });
    expect(changed.json.group).toEqual({ ...group, name: 'writers', policyDefaults: defaults('a', 'b'), version: 3, updatedAt: time });
    expect(await read(group.id)).toEqual(changed.json.group);
    expect(Date.parse(changed.json.group.updatedAt)).toBeGreaterThan(Date.parse(group.updatedAt));
  });

  test('values that are there already are no change: the version stays', async () => {
    const group = await newGroup({ policyDefaults: { ...defaults('a'), metadata: { one: '1', two: '2' } } });
    const same = await patch(group.id, { name: group.name, policyDefaults: { metadata: { two: '2', one: '1' }, ...defaults('a') } });
    expect([same.status, same.json]).toEqual([200, { group }]);
  });

  test.each<[string, unknown, string]>([
    ['nothing', {}, 'body'], ['members beside a name', { name: 'n', members: ['a'] }, 'members'], ['a version', { name: 'n', version: 9 }, 'version'],
    ['an empty name', { name: '' }, 'name'], ['a name of 121 characters', { name: 'x'.repeat(121) }, 'name'], ['a null name', { name: null }, 'name'],
    ['an open mode', { policyDefaults: { mode: 'open', allowedAgentIds: [] } }, 'policyDefaults.mode'], ['half of the defaults', { policyDefaults: { mode: 'agent', maxUses: 1 } }, 'policyDefaults.allowedAgentIds'],
    ['a list as the body', [], 'body'], ['If-Match in the body', { name: 'n', ifMatch: '1' }, 'ifMatch'],
  ])('%s answers invalid_request', async (_title, json, field) => {
    const group = await newGroup();
    expectRefusal(await patch(group.id, json), 400, 'invalid_request', field);
    expect(await read(group.id)).toEqual(group);
  });

  test('an unknown group answers group_not_found', async () => {
    expectRefusal(await patch(unknown, { name: 'n' }), 404, 'group_not_found');
  });

  test.each(['shr_000000000000000000000000', 'agrp_', 'agrp_a-b', `agrp_${'x'.repeat(64)}`, '%00'])('%s is no group id and answers invalid_request', async (groupId) => {
    expectRefusal(await patch(groupId, { name: 'n' }), 400, 'invalid_request', 'groupId');
  });
});

describe('DELETE /api/agent/groups/{groupId}', () => {
  test('deletes a group and answers its last state', async () => {
    const group = await newGroup({ members: ['a'] });
    const answer = await remove(group.id);
    expect([answer.status, answer.json]).toEqual([200, { group }]);
    expect(await read(group.id)).toBeUndefined();
  });

  test('a deleted group answers group_not_found to everything', async () => {
    const { id } = await newGroup({ members: ['a'] });
    await remove(id);
    for (const answer of [await remove(id), await patch(id, { name: 'n' }), await add(id, { agentId: 'b' }), await dismiss(id, 'a')]) expectRefusal(answer, 404, 'group_not_found');
    expectRefusal(await call('/api/transfer-plan', { json: { filename: 'a', agentGroupId: id }, bearer: session }), 404, 'group_not_found');
  });
});

describe('POST /api/agent/groups/{groupId}/members', () => {
  test('adds an agent, as a member unless a role is named, and does not widen policyDefaults', async () => {
    const group = await newGroup({ members: ['a'], policyDefaults: defaults('a') });
    const first = await add(group.id, { agentId: 'b' });
    expect(first.status).toBe(201);
    expect(first.json.group).toEqual({
      ...group, members: [...group.members, { agentId: 'b', role: 'member', addedAt: time, addedByAgentId: null }], version: 2, updatedAt: time,
    });
    const second = await add(group.id, { agentId: 'c', role: 'manager' });
    expect(second.json.group).toMatchObject({ members: [{ agentId: 'a' }, { agentId: 'b' }, { agentId: 'c', role: 'manager' }], policyDefaults: defaults('a'), version: 3 });
    expect(await read(group.id)).toEqual(second.json.group);
  });

  test('an agent that is a member answers agent_already_member, also with another role', async () => {
    const group = await newGroup({ members: ['a'] });
    expectRefusal(await add(group.id, { agentId: 'a' }), 409, 'agent_already_member');
    expectRefusal(await add(group.id, { agentId: 'a', role: 'manager' }), 409, 'agent_already_member');
    expect(await read(group.id)).toEqual(group);
  });

  test('a group of 100 answers group_full, and agent_already_member for one of its own', async () => {
    const group = await newGroup({ members: ids(100) });
    expectRefusal(await add(group.id, { agentId: 'one-more' }), 409, 'group_full');
    expectRefusal(await add(group.id, { agentId: 'agent-5' }), 409, 'agent_already_member');
    expect((await read(group.id))!.version).toBe(1);
  });

  test('of ten agents that join a group of 99 at once, one gets in', async () => {
    const { id } = await newGroup({ members: ids(99) });
    const answers = await Promise.all(ids(10, 'late').map((agentId) => add(id, { agentId })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 201)) expectRefusal(answer, 409, 'group_full');
    expect(await read(id)).toMatchObject({ version: 2, members: { length: 100 } });
  });

  test.each<[string, Json, string]>([
    ['no agent', {}, 'agentId'], ['no agent id', { agentId: 'a/b' }, 'agentId'], ['another role', { agentId: 'a', role: 'admin' }, 'role'], ['an unknown field', { agentId: 'a', name: 'n' }, 'name'],
  ])('%s answers invalid_request', async (_title, json, field) => {
    expectRefusal(await add((await newGroup()).id, json), 400, 'invalid_request', field);
  });

  test('an unknown group answers group_not_found', async () => {
    expectRefusal(await add(unknown, { agentId: 'a' }), 404, 'group_not_found');
  });

  test('the same Idempotency-Key and request adds once and answers the same, also after the agent left', async () => {
    const { id } = await newGroup();
    const headers = { 'idempotency-key': randomUUID() };
    const answers = await Promise.all(Array.from({ length: 8 }, () => add(id, { agentId: 'a' }, headers)));
    await dismiss(id, 'a');
    answers.push(await add(id, { agentId: 'a' }, headers));
    const { json } = answers[0]!;
    for (const answer of answers) expect([answer.status, answer.json]).toEqual([201, json]);
    expect(await read(id)).toMatchObject({ members: [], version: 3 });
    expectRefusal(await add(id, { agentId: 'b' }, headers), 422, 'idempotency_key_reused');
  });

  test('a refused addition keeps its Idempotency-Key for a later try', async () => {
    const { id } = await newGroup({ members: ids(100) });
    const headers = { 'idempotency-key': randomUUID() };
    expectRefusal(await add(id, { agentId: 'a' }, headers), 409, 'group_full');
    await dismiss(id, 'agent-0');
    expect((await add(id, { agentId: 'a' }, headers)).status).toBe(201);
  });
});

describe('DELETE /api/agent/groups/{groupId}/members/{agentId}', () => {
  test('removes the agent, also from policyDefaults.allowedAgentIds', async () => {
    const group = await newGroup({ members: ['a', 'b', 'c'], policyDefaults: { ...defaults('b', 'c', 'stranger'), maxUses: 2 } });
    const answer = await dismiss(group.id, 'b');
    expect(answer.status).toBe(200);
    expect(answer.json.group).toMatchObject({ policyDefaults: { ...defaults('c', 'stranger'), maxUses: 2 }, version: 2 });
    expect(answer.json.group.members.map(({ agentId }: { agentId: string }) => agentId)).toEqual(['a', 'c']);
    expect(await read(group.id)).toEqual(answer.json.group);
  });

  test('adding the agent again does not bring it back into policyDefaults', async () => {
    const { id } = await newGroup({ members: ['a'], policyDefaults: defaults('a') });
    await dismiss(id, 'a');
    expect((await add(id, { agentId: 'a' })).json.group.policyDefaults).toEqual(defaults());
  });

  test('an agent that is no member answers member_not_found and stays on the allow list', async () => {
    const group = await newGroup({ members: ['a'], policyDefaults: defaults('b') });
    expectRefusal(await dismiss(group.id, 'b'), 404, 'member_not_found');
    expectRefusal(await dismiss(group.id, 'A'), 404, 'member_not_found');
    await dismiss(group.id, 'a');
    expectRefusal(await dismiss(group.id, 'a'), 404, 'member_not_found');
    expect((await read(group.id))!.policyDefaults).toEqual(defaults('b'));
  });

  test('an unknown group answers group_not_found', async () => {
    expectRefusal(await dismiss(unknown, 'a'), 404, 'group_not_found');
  });

  test('an id that is no agent id answers invalid_request', async () => {
    expectRefusal(await dismiss((await newGroup()).id, 'a b'), 400, 'invalid_request', 'agentId');
  });

  test.each(['a:b', '__proto__', 'Az09._:-', 'x'.repeat(128)])('%s can join and leave', async (agentId) => {
    const { id } = await newGroup();
    expect((await add(id, { agentId })).status).toBe(201);
    expect((await dismiss(id, agentId)).json.group.members).toEqual([]);
  });
});

describe('If-Match', () => {
  const changes: [string, (group: Group, headers: Record<string, string>) => ReturnType<typeof call>][] = [
    ['PATCH a group', (group, headers) => patch(group.id, { name: `changed ${randomUUID()}` }, headers)],
    ['POST a member', (group, headers) => add(group.id, { agentId: `agent-${randomUUID()}` }, headers)],
    ['DELETE a member', (group, headers) => dismiss(group.id, 'a', headers)],
    ['DELETE a group', (group, headers) => remove(group.id, headers)],
  ];

  test.each(changes)('%s: the version as a tag, as a number, in a list, or * lets the change through', async (_title, change) => {
    for (const tag of ['"2"', '2', '"1", "2"', '*']) {
      const { id } = await newGroup({ members: ['a'] });
      const group = (await patch(id, { name: 'version two' })).json.group as Group;
      expect((await change(group, { 'if-match': tag })).status, tag).toBeLessThan(300);
    }
  });

  test.each(changes)('%s: any other version answers precondition_failed and changes nothing', async (_title, change) => {
    const group = await newGroup({ members: ['a'] });
    for (const tag of ['"2"', '0', 'W/"1"', '"one"', '']) expectRefusal(await change(group, { 'if-match': tag }), 412, 'precondition_failed');
    expect(await read(group.id)).toEqual(group);
  });

  test('of two changes of the same version one happens', async () => {
    const { id } = await newGroup();
    const answers = await Promise.all(['one', 'two', 'three'].map((name) => patch(id, { name }, { 'if-match': '"1"' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412]);
  });

  test('comes before what else stands in the way, and after group_not_found', async () => {
    const group = await newGroup({ members: ['a'] });
    expectRefusal(await add(group.id, { agentId: 'a' }, { 'if-match': '"9"' }), 412, 'precondition_failed');
    expectRefusal(await dismiss(group.id, 'nobody', { 'if-match': '"9"' }), 412, 'precondition_failed');
    expectRefusal(await remove(unknown, { 'if-match': '"1"' }), 404, 'group_not_found');
  });
});

describe('every endpoint of agent groups', () => {
  const requests: [string, string, unknown][] = [
    ['POST', '/api/agent/groups', { name: 'n' }], ['GET', '/api/agent/groups', undefined], ['PATCH', path(unknown), { name: 'n' }], ['DELETE', path(unknown), undefined],
    ['POST', `${path(unknown)}/members`, { agentId: 'a' }], ['DELETE', `${path(unknown)}/members/a`, undefined],
  ];

  test.each(requests)('%s %s takes the owner session and nothing else', async (method, where, json) => {
    const agent = (await must('/api/agent/keys', { json: {}, bearer: session })).json;
    const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: agent.key })).json;
    expectRefusal(await call(where, { method, json }), 401, 'owner_auth_required');
    for (const bearer of [agent.key, accessToken, 'garbage']) expectRefusal(await call(where, { method, json, bearer }), 401, 'invalid_owner_credential');
  });

  test('the session cookie from another site answers forbidden_origin', async () => {
    const headers = { cookie: `aex_session=${session}`, origin: 'https://elsewhere.example' };
    for (const [method, where, json] of requests.filter(([one]) => one !== 'GET')) expectRefusal(await call(where, { method, json, headers }), 403, 'forbidden_origin');
  });

  test('another owner’s group answers group_not_found, and is not listed', async () => {
    const { id } = await newGroup({ members: ['a'] });
    const { session: bearer } = await makeOwner(session);
    expectRefusal(await call(path(id), { method: 'PATCH', json: { name: 'theirs' }, bearer }), 404, 'group_not_found');
    expectRefusal(await call(path(id), { method: 'DELETE', bearer }), 404, 'group_not_found');
    expectRefusal(await call(`${path(id)}/members`, { json: { agentId: 'b' }, bearer }), 404, 'group_not_found');
    expectRefusal(await call(`${path(id)}/members/a`, { method: 'DELETE', bearer }), 404, 'group_not_found');
    expect((await must('/api/agent/groups', { bearer })).json).toEqual({ count: 0, groups: [] });
  });
});

describe('the record of a group', () => {
  test('has an event for each change and none for what was refused or changed nothing', async () => {
    const { id } = await newGroup({ members: ['a'] });
    await patch(id, { name: 'reviewers' });
    await patch(id, { name: 'writers' });
    await add(id, { agentId: 'b', role: 'manager' });
    await add(id, { agentId: 'b' });
    await dismiss(id, 'b');
    await dismiss(id, 'b');
    await remove(id);
    const found = await events(session, { targetType: 'agent_group', targetId: id }, 5);
    const actor = { type: 'owner', id: ownerId };
    const facts = { targetType: 'agent_group', targetId: id, actor, ownerId, outcome: 'allowed' };
    expect(found.reverse()).toMatchObject([
      { ...facts, eventType: 'agent_group.created', agentId: null, data: { name: 'reviewers', memberCount: 1, version: 1 } },
      { ...facts, eventType: 'agent_group.updated', agentId: null, data: { changes: ['name'], version: 2 } },
      { ...facts, eventType: 'agent_group.member_added', agentId: 'b', data: { role: 'manager', version: 3 } },
      { ...facts, eventType: 'agent_group.member_removed', agentId: 'b', data: { version: 4 } },
      { ...facts, eventType: 'agent_group.deleted', agentId: null, data: { version: 4 } },
    ]);
  });
});
