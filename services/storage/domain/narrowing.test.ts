import { describe, expect, test } from 'vitest';
import type { PlanClaims } from '../../../shared/contracts/plans.ts';
import { bytesAllowed, checkLane, checkUnexpired, narrow, type Wish } from './narrowing.ts';

const claims: PlanClaims = {
  planId: 'pln_a', transferId: 'trf_a', shareId: 'shr_a', creator: { ownerId: null, agentId: null },
  lane: 'single', fallback: ['multipart'], filename: 'a.json', mimeType: 'application/json', size: 1_000, sha256: 'a'.repeat(64), maxBytes: 1_000,
  geometry: { partSize: 500, maxParallelParts: 4 },
  release: { mode: 'agent', allowedAgentIds: ['x', 'y'], maxUses: 3, ttl: 600, metadata: { step: '1', gate: 'g' } },
  iss: 'http://localhost', iat: 1_000, exp: 2_000,
};
const codeOf = (wish: Wish, plan = claims) => {
  try {
    narrow(plan, wish);
    return 'allowed';
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe('narrowing a plan', () => {
  test('a request that says nothing gets what was planned', () => {
    expect(narrow(claims, {})).toEqual(claims.release);
  });

  test('less of everything passes and is what the share gets', () => {
    expect(narrow(claims, { size: 1, ttl: 30, maxUses: 1, allowedAgentIds: ['y'] })).toEqual({ ...claims.release, ttl: 30, maxUses: 1, allowedAgentIds: ['y'] });
  });

  test('a cap where the plan has none is narrower', () => {
    const { maxUses: _none, ...release } = claims.release;
    expect(narrow({ ...claims, release }, { maxUses: 5 }).maxUses).toBe(5);
  });

  test.each<[string, Wish]>([
    ['size', { size: 1_001 }],
    ['ttl', { ttl: 601 }],
    ['maxUses', { maxUses: 4 }],
    ['allowedAgentIds', { allowedAgentIds: ['x', 'z'] }],
    ['allowedAgentIds', { allowedAgentIds: [] }],
    ['authMode', { authMode: 'open' }],
  ])('a wider %s is refused by its name', (field, wish) => {
    expect(() => narrow(claims, wish)).toThrowError(expect.objectContaining({ code: 'plan_widened', details: expect.objectContaining({ errors: [expect.objectContaining({ path: field })] }) }));
  });

  test.each<[string, Wish]>([
    ['filename', { filename: 'b.json' }],
    ['mimeType', { mimeType: 'text/plain' }],
    ['partSize', { partSize: 499 }],
    ['policyMetadata', { policyMetadata: { step: '2' } }],
    ['policyMetadata', { policyMetadata: { other: '1' } }],
    ['policyMetadata', { policyMetadata: { toString: 'x' } }],
    ['agentGroupId', { agentGroupId: 'agrp_b' }],
  ])('another %s is not what was planned', (field, wish) => {
    expect(() => narrow(claims, wish)).toThrowError(expect.objectContaining({ code: 'plan_mismatch', details: expect.objectContaining({ errors: [expect.objectContaining({ path: field })] }) }));
  });

  test('the planned group may be said again', () => {
    expect(codeOf({ agentGroupId: 'agrp_a' }, { ...claims, agentGroupId: 'agrp_a' })).toBe('allowed');
  });

  test('labels may be said again without those of the template', () => {
    expect(codeOf({ policyMetadata: { step: '1' } })).toBe('allowed');
  });

  test('an open plan takes no allow list and no agent mode', () => {
    const open = { ...claims, release: { ...claims.release, mode: 'open' as const, allowedAgentIds: [] } };
    expect(codeOf({ allowedAgentIds: [] }, open)).toBe('allowed');
    expect(codeOf({ allowedAgentIds: ['x'] }, open)).toBe('plan_widened');
    expect(codeOf({ authMode: 'agent' }, open)).toBe('plan_mismatch');
  });

  test('without a planned size the capacity is the bound', () => {
    const { size: _none, ...unsized } = claims;
    expect(codeOf({ size: 1_000 }, unsized)).toBe('allowed');
    expect(codeOf({ size: 1_001 }, unsized)).toBe('payload_too_large');
    expect(bytesAllowed({ ...claims, size: 10 })).toBe(10);
  });

  test('another digest than the planned one is refused', () => {
    expect(codeOf({ sha256: 'b'.repeat(64) })).toBe('digest_mismatch');
    expect(codeOf({ sha256: claims.sha256 })).toBe('allowed');
  });

  test('the lane must be the planned one or a fallback', () => {
    expect(() => { checkLane(claims, 'multipart'); }).not.toThrow();
    expect(() => { checkLane({ ...claims, fallback: [] }, 'multipart'); }).toThrowError(expect.objectContaining({ code: 'plan_mismatch' }));
  });

  test('a plan is good until its expiry and not at it', () => {
    expect(() => { checkUnexpired(claims, 1_999_999); }).not.toThrow();
    expect(() => { checkUnexpired(claims, 2_000_000); }).toThrowError(expect.objectContaining({ code: 'plan_expired' }));
  });
});
