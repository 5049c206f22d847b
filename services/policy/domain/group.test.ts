import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasMember, isCurrent, refusalOfAddition, refusalOfRemoval, versionsOf, type Member } from './group.ts';

const member = (agentId: string): Member => ({ agentId, role: 'member', addedAt: '2026-01-01T00:00:00.000Z', addedByAgentId: null });
const groupOf = (...agentIds: string[]) => ({ members: agentIds.map(member) });
const many = (count: number) => groupOf(...Array.from({ length: count }, (_one, index) => `agent-${index}`));

describe('If-Match', () => {
  test.each<[string | undefined, string[] | undefined]>([
    [undefined, undefined], ['*', undefined], [' * ', undefined],
    ['"3"', ['3']], ['3', ['3']], [' "3" , 4', ['3', '4']], ['"3","4"', ['3', '4']],
    ['W/"3"', []], ['', []], ['"abc"', []], ['"3', []], ['3"', []], ['-3', []], ['3.0', []], ['""', []], ['"*"', []],
  ])('%j lets through %j', (ifMatch, versions) => {
    expect(versionsOf(ifMatch)).toEqual(versions);
  });

  test('whatever it says, it lets through the named version or nothing', () => {
    fc.assert(fc.property(fc.nat(), fc.string(), (version, text) => {
      expect(isCurrent({ version }, versionsOf(`"${version}"`))).toBe(true);
      expect(isCurrent({ version }, versionsOf(`"${version + 1}"`))).toBe(false);
      const named = versionsOf(text);
      for (const one of named ?? []) expect(text).toContain(one);
    }));
  });
});

describe('members', () => {
  test('an agent is added where it is not yet a member and there is room', () => {
    expect(refusalOfAddition(many(99), 'new')).toBeUndefined();
    expect(refusalOfAddition(many(100), 'new')).toBe('group_full');
    expect(refusalOfAddition(many(100), 'agent-7')).toBe('agent_already_member');
    expect(refusalOfAddition(groupOf('a'), 'a')).toBe('agent_already_member');
  });

  test('only a member can be removed, and ids are matched exactly', () => {
    expect(refusalOfRemoval(groupOf('a'), 'a')).toBeUndefined();
    expect(refusalOfRemoval(groupOf('a'), 'A')).toBe('member_not_found');
    expect(hasMember(groupOf(), 'a')).toBe(false);
  });
});
