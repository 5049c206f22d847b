import { describe, expect, test } from 'vitest';
import { describePermission, expiryOf, type Permission } from './permission.ts';

const permission: Permission = {
  id: 'perm_1', ownerId: 'own_1', from: { type: 'agent', agentId: 'a' }, to: { type: 'agent', agentId: 'b' },
  scopes: ['grant.issue'], constraints: { allowedPolicyModes: ['agent'] },
  createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.000Z', expiresAt: '2026-01-02T00:00:00.000Z',
  audit: { createdBy: { type: 'owner', id: 'own_1' }, createdByRequestId: 'req_1' }, version: 1,
};
const expiry = Date.parse('2026-01-02T00:00:00.000Z');
const stateAt = (now: number, facts: Partial<Permission> = {}) => describePermission({ ...permission, ...facts }, now).audit.state;

describe('the state of a permission', () => {
  test('is active until its expiry and expired from then on', () => {
    expect(stateAt(expiry - 1)).toBe('active');
    expect(stateAt(expiry)).toBe('expired');
  });

  test('is active for ever without an expiry', () => {
    const { expiresAt: _none, ...standing } = permission;
    expect(describePermission(standing, Number.MAX_SAFE_INTEGER).audit.state).toBe('active');
  });

  test('is revoked once it was revoked, also past its expiry', () => {
    expect(stateAt(0, { revokedAt: '2026-01-01T12:00:00.000Z' })).toBe('revoked');
    expect(stateAt(expiry, { revokedAt: '2026-01-01T12:00:00.000Z' })).toBe('revoked');
  });

  test('says beside it that nothing enforces it', () => {
    expect(describePermission(permission, 0).audit).toEqual({ ...permission.audit, state: 'active', enforcement: 'deferred' });
  });
});

describe('the expiry of a new permission', () => {
  test('may be absent', () => {
    expect(expiryOf(undefined, 0)).toBeNull();
  });

  test('lies in the future', () => {
    expect(expiryOf('2026-01-02T01:00:00.000+01:00', expiry - 1)).toEqual(new Date(expiry));
    expect(() => expiryOf('2026-01-02T00:00:00Z', expiry)).toThrow(/expiresAt: must be in the future/);
    expect(() => expiryOf('1999-01-01T00:00:00Z', expiry)).toThrow(/expiresAt/);
  });

  test('has a year of four digits also in UTC', () => {
    expect(expiryOf('9999-12-31T23:59:59Z', 0)).toEqual(new Date('9999-12-31T23:59:59Z'));
    expect(() => expiryOf('9999-12-31T23:59:59-01:00', 0)).toThrow(/expiresAt/);
  });
});
