/** Agent groups against a real PostgreSQL: races, versions and pruning, held against a plain model. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../shared/db.ts';
import { eventOfService, type EventType } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { hasMember, type Group, type Member, type PolicyDefaults } from '../domain/group.ts';
import { answersStore } from './answers.ts';
import { groupsStore, type GroupAddress, type GroupChange } from './groups.ts';

let scratch: ScratchDatabase;
let database: Database;
let store: ReturnType<typeof groupsStore> & ReturnType<typeof answersStore>;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  database = scratch.database;
  store = { ...groupsStore(database), ...answersStore(database) };
  await database.run((sql) => sql`insert into owners (id, email, password_hash) values ('own_1', 'a@b', ''), ('own_2', 'c@d', '')`);
});
afterAll(() => scratch.drop());

const event = (eventType: EventType) => eventOfService('policy', Date.now(), { eventType, targetType: 'agent_group', targetId: null });
const added = () => event('agent_group.member_added');
const member = (agentId: string): Member => ({ agentId, role: 'member', addedAt: '2026-01-01T00:00:00.000Z', addedByAgentId: null });
const at = ({ id }: Pick<Group, 'id'>, versions?: string[]): GroupAddress => ({ groupId: id, ownerId: 'own_1', versions });
const defaultsOf = (...allowedAgentIds: string[]): PolicyDefaults => ({ mode: 'agent', allowedAgentIds });

function newGroup(agentIds: string[] = [], policyDefaults = defaultsOf()): Promise<Group> {
  return store.createGroup({ id: newId('group'), ownerId: 'own_1', name: 'n', members: agentIds.map(member), policyDefaults }, event('agent_group.created'));
}
const filled = (count: number) => Array.from({ length: count }, (_one, index) => `agent-${index}`);
const read = async (group: Group) => (await store.listGroups('own_1', 1_000)).find(({ id }) => id === group.id);

async function versionsTold(eventId: string): Promise<unknown[]> {
  const rows = await database.run((sql) => sql<{ version: unknown }[]>`select event->'data'->'version' as version from outbox where id = ${eventId}`);
  return rows.map(({ version }) => version);
}

describe('many changes at once', () => {
  test('ten additions to a group of 99 let one through', async () => {
    const group = await newGroup(filled(99));
    const changes = await Promise.all(Array.from({ length: 10 }, (_one, index) => store.addMember(at(group), member(`new-${index}`), added())));
    expect(changes.filter((one) => one!.changed)).toHaveLength(1);
    expect(changes.map((one) => one!.group.members.length)).toEqual(Array(10).fill(100));
    expect((await read(group))!.version).toBe(2);
  });

  test('thirty additions of different agents all happen, each with a version of its own', async () => {
    const group = await newGroup();
    const events = Array.from({ length: 30 }, added);
    const changes = await Promise.all(events.map((one, index) => store.addMember(at(group), member(`new-${index}`), one)));
    expect(changes.map((one) => one!.group.version).sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_one, index) => index + 2));
    const told = await Promise.all(events.map(({ id }) => versionsTold(id)));
    expect(told.flat().sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 30 }, (_one, index) => index + 2));
    const now = (await read(group))!;
    expect(new Set(now.members.map(({ agentId }) => agentId)).size).toBe(30);
  });

  test('a change that waited for another is dated when it happened, not when it was asked for', async () => {
    const group = await newGroup();
    const holding = database.run((sql) => sql`select pg_sleep(0.4) from (select from agent_groups where id = ${group.id} for update) held`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const asked = Date.now();
    const change = await store.addMember(at(group), member('a'), added());
    await holding;
    expect(Date.parse(change!.group.updatedAt) - asked).toBeGreaterThan(150);
  });

  test('the same agent is added once, and removed once', async () => {
    const group = await newGroup();
    const additions = await Promise.all(Array.from({ length: 10 }, () => store.addMember(at(group), member('a'), added())));
    expect(additions.filter((one) => one!.changed)).toHaveLength(1);
    const removals = await Promise.all(Array.from({ length: 10 }, () => store.removeMember(at(group), 'a', event('agent_group.member_removed'))));
    expect(removals.filter((one) => one!.changed)).toHaveLength(1);
    expect(await read(group)).toMatchObject({ members: [], version: 3 });
  });

  test('of changes of the same version one happens', async () => {
    const group = await newGroup();
    const changes = await Promise.all(Array.from({ length: 10 }, (_one, index) => store.updateGroup(at(group, ['1']), { name: `name ${index}` }, event('agent_group.updated'))));
    expect(changes.filter((one) => one!.changed)).toHaveLength(1);
    expect(changes.every((one) => one!.group.version === 2)).toBe(true);
  });

  test('one deletion finds the group', async () => {
    const group = await newGroup(['a']);
    const deletions = await Promise.all(Array.from({ length: 5 }, () => store.deleteGroup(at(group), event('agent_group.deleted'))));
    expect(deletions.filter((one) => one?.changed)).toEqual([{ group, changed: true }]);
    expect(deletions.filter((one) => one === undefined)).toHaveLength(4);
  });
});

describe('a change', () => {
  test('of another owner’s group finds nothing and changes nothing', async () => {
    const group = await newGroup(['a']);
    const other = { ...at(group), ownerId: 'own_2' };
    expect(await store.addMember(other, member('b'), added())).toBeUndefined();
    expect(await store.removeMember(other, 'a', event('agent_group.member_removed'))).toBeUndefined();
    expect(await store.updateGroup(other, { name: 'theirs' }, event('agent_group.updated'))).toBeUndefined();
    expect(await store.deleteGroup(other, event('agent_group.deleted'))).toBeUndefined();
    expect(await store.findPolicyDefaults(group.id, 'own_2')).toBeUndefined();
    expect(await read(group)).toEqual(group);
  });

  test('that changes nothing tells nothing and keeps the version', async () => {
    const group = await newGroup(['a'], { ...defaultsOf('a'), metadata: { one: '1', two: '2' } });
    const one = event('agent_group.updated');
    const same = { name: 'n', policyDefaults: { metadata: { two: '2', one: '1' }, ...defaultsOf('a') } };
    expect(await store.updateGroup(at(group), same, one)).toEqual({ group, changed: false });
    expect(await versionsTold(one.id)).toEqual([]);
  });

  test('with an operation leaves its answer, as the row became', async () => {
    const group = await newGroup();
    const operation = { scope: newId('plan'), requestDigest: 'd' };
    const change = await store.addMember(at(group), member('a'), added(), operation);
    const kept = await store.findAnswer(operation.scope);
    expect(JSON.parse(kept!.answer.toString('utf8'))).toEqual(change!.group);
    // The same again as a second statement breaks as a whole.
    await expect(store.addMember(at(group), member('b'), added(), operation)).rejects.toThrow(/answers_pkey/);
    expect(await read(group)).toEqual(change!.group);
  });
});

type Step =
  | { kind: 'add' | 'remove'; agentId: string; version: number | undefined }
  | { kind: 'update'; name: string | undefined; allowed: string[] | undefined; version: number | undefined };

const agentId = fc.constantFrom('a', 'b', 'c', 'A', '..', '__proto__', 'a:b');
const version = fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined, freq: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('add' as const, 'remove' as const), agentId, version }),
  fc.record({
    kind: fc.constant('update' as const), version,
    name: fc.option(fc.constantFrom('n', 'm'), { nil: undefined }),
    allowed: fc.option(fc.uniqueArray(agentId), { nil: undefined }),
  }),
);

type Model = Pick<Group, 'name' | 'members' | 'policyDefaults' | 'version'>;

/** What a step makes of a group, in as few words as possible. */
function predict(model: Model, one: Step): Model {
  if (one.version !== undefined && one.version !== model.version) return model;
  const { policyDefaults, members } = model;
  const grown = { ...model, version: model.version + 1 };
  switch (one.kind) {
    case 'add':
      return hasMember(model, one.agentId) ? model : { ...grown, members: [...members, member(one.agentId)] };
    case 'remove':
      return hasMember(model, one.agentId)
        ? {
          ...grown, members: members.filter((each) => each.agentId !== one.agentId),
          policyDefaults: { ...policyDefaults, allowedAgentIds: policyDefaults.allowedAgentIds.filter((id) => id !== one.agentId) },
        }
        : model;
    case 'update': {
      const { name = model.name, allowed = policyDefaults.allowedAgentIds } = one;
      const same = name === model.name && JSON.stringify(allowed) === JSON.stringify(policyDefaults.allowedAgentIds);
      return same ? model : { ...grown, name, policyDefaults: { ...policyDefaults, allowedAgentIds: allowed } };
    }
  }
}

function apply(group: Group, one: Step): Promise<GroupChange | undefined> {
  const address = at(group, one.version === undefined ? undefined : [String(one.version)]);
  switch (one.kind) {
    case 'add': return store.addMember(address, member(one.agentId), added());
    case 'remove': return store.removeMember(address, one.agentId, event('agent_group.member_removed'));
    case 'update': return store.updateGroup(address, { name: one.name, policyDefaults: one.allowed && defaultsOf(...one.allowed) }, event('agent_group.updated'));
  }
}

test('whatever is done to it, a group is what a plain model says: members, versions, and defaults without those who left', async () => {
  await fc.assert(fc.asyncProperty(fc.uniqueArray(agentId), fc.uniqueArray(agentId), fc.array(step, { maxLength: 12 }), async (agentIds, allowed, steps) => {
    const group = await newGroup(agentIds, defaultsOf(...allowed));
    let model: Model = group;
    for (const one of steps) {
      const expected = predict(model, one);
      const change = await apply(group, one);
      expect(change).toMatchObject({ group: { name: expected.name, members: expected.members, policyDefaults: expected.policyDefaults, version: expected.version }, changed: expected !== model });
      model = expected;
    }
  }), { numRuns: 40 });
});
