import { describe, expect, test } from 'vitest';
import { changedFields, checkChanges, needsBytesUntil, sharesOf, type Changes, type OwnShare } from './own-share.ts';

const now = Date.parse('2026-03-01T12:00:00Z');
const at = (seconds: number) => new Date(now + seconds * 1_000);
const share: OwnShare = {
  id: 'shr_1', targetType: 'file', targetId: 'trf_1', filename: 'a', mimeType: 'text/plain', size: 1, mode: 'open', allowedAgentIds: [],
  maxUses: 5, uses: 3, metadata: { a: '1' }, ownerId: 'own_1', agentId: null, expiresAt: at(100), passcodeHash: null,
  state: 'active', createdAt: at(-10), targetExpiresAt: at(200),
};
const check = (changes: Changes, facts: Partial<OwnShare> = {}) => () => checkChanges({ ...share, ...facts }, changes, { now, maxTtl: 1_000 });
const agents = { mode: 'agent', allowedAgentIds: ['a'] } as const;

describe('a change of a share', () => {
  test.each<[string, Changes, Partial<OwnShare>?]>([
    ['an expiry in the next second', { expiresAt: at(1) }],
    ['an expiry at the bound', { expiresAt: at(1_000) }],
    ['an expiry beyond the bound that the share has already', { expiresAt: at(1_500) }, { expiresAt: at(2_000) }],
    ['a cap of the uses that are spent', { maxUses: 3 }],
    ['no cap', { maxUses: null }],
    ['other agents', { allowedAgentIds: ['b'] }, agents],
    ['no labels', { metadata: {} }],
    ['an expiry of a folder beyond that of its files, which are kept with it', { expiresAt: at(201) }, { targetType: 'folder' }],
    ['an expiry of a pipe within that of its bytes', { expiresAt: at(200) }, { targetType: 'pipe' }],
  ])('to %s is good', (_title, changes, facts) => {
    expect(check(changes, facts)).not.toThrow();
  });

  test.each<[string, Changes, string, Partial<OwnShare>?]>([
    ['the present as expiry', { expiresAt: at(0) }, 'expiresAt'],
    ['an expiry beyond the bound', { expiresAt: at(1_000.001) }, 'expiresAt'],
    ['an expiry of a pipe beyond that of its bytes', { expiresAt: at(201) }, 'expiresAt', { targetType: 'pipe' }],
    ['a cap below the uses that are spent', { maxUses: 2 }, 'maxUses'],
    ['agents on an open share', { allowedAgentIds: ['a'] }, 'allowedAgentIds'],
    ['an empty allow list on an open share', { allowedAgentIds: [] }, 'allowedAgentIds'],
    ['an empty allow list on an agent share', { allowedAgentIds: [] }, 'allowedAgentIds', agents],
  ])('to %s is refused by name', (_title, changes, field, facts) => {
    expect(check(changes, facts)).toThrow(expect.objectContaining({ code: 'invalid_request', details: expect.objectContaining({ errors: [expect.objectContaining({ path: field })] }) }));
  });

  test('wants the bytes longer only beyond the time for which they are kept', () => {
    expect(needsBytesUntil(share, { expiresAt: at(200) })).toBeUndefined();
    expect(needsBytesUntil(share, { expiresAt: at(201) })).toEqual(at(201));
    expect(needsBytesUntil(share, { maxUses: 9 })).toBeUndefined();
  });

  test('names the fields that become another', () => {
    expect(changedFields(share, { expiresAt: at(100), maxUses: 5, allowedAgentIds: [], metadata: { a: '1' } })).toEqual([]);
    expect(changedFields(share, {})).toEqual([]);
    expect(changedFields(share, { expiresAt: at(101), maxUses: null, allowedAgentIds: ['b'], metadata: { a: '2' } })).toEqual(['expiresAt', 'maxUses', 'allowedAgentIds', 'metadata']);
    expect(changedFields(share, { metadata: { toString: '1' } })).toEqual(['metadata']);
    expect(changedFields({ ...share, ...agents }, { allowedAgentIds: ['b'] })).toEqual(['allowedAgentIds']);
  });
});

test('an owner has all of their shares, an agent its own, nobody none', () => {
  expect(sharesOf({ type: 'owner', ownerId: 'o', sessionId: 's' })).toEqual({ ownerId: 'o' });
  expect(sharesOf({ type: 'agent', ownerId: 'o', agentId: 'a', keyId: 'k' })).toEqual({ ownerId: 'o', agentId: 'a' });
  expect(() => sharesOf({ type: 'anonymous' })).toThrow(expect.objectContaining({ code: 'owner_auth_required' }));
});
