import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PlanClaims } from '../../../shared/contracts/plans.ts';
import { bytesAllowed, checkLane, checkUnexpired, nameAsDescribed, narrow, type Wish } from './narrowing.ts';

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

describe('what the source of the bytes tells of them', () => {
  const described = { filename: 'b.txt', mimeType: 'text/plain' };

  test('is taken where the plan left it open', () => {
    const open = { ...claims, describedBySource: true } as const;
    expect(nameAsDescribed(open, described)).toEqual({ ...open, ...described });
    expect(nameAsDescribed(open, { mimeType: 'text/plain' })).toMatchObject({ filename: 'a.json', mimeType: 'text/plain' });
  });

  test('is refused by every other plan', () => {
    expect(() => nameAsDescribed(claims, described)).toThrow(expect.objectContaining({ code: 'plan_mismatch' }));
    expect(nameAsDescribed(claims, undefined)).toBe(claims);
  });
});

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

describe('held against a plain model', () => {
  const agents = ['a', 'b', 'c', 'd'];
  const someAgents = fc.subarray(agents, { minLength: 1 });
  const planned = fc.record({
    size: fc.integer({ min: 1, max: 100 }), ttl: fc.integer({ min: 30, max: 100 }),
    maxUses: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }), allowedAgentIds: someAgents,
  });
  const wished = fc.record({
    size: fc.integer({ min: 1, max: 120 }), ttl: fc.integer({ min: 30, max: 120 }),
    maxUses: fc.integer({ min: 1, max: 12 }), allowedAgentIds: fc.subarray(agents),
  }, { requiredKeys: [] });

  test('a wish passes exactly when every field of it is at most the plan’s, and what comes out is never wider than the plan or the wish', () => {
    fc.assert(fc.property(planned, wished, ({ size, ttl, maxUses, allowedAgentIds }, wish) => {
      const plan: PlanClaims = { ...claims, size, maxBytes: size, release: { mode: 'agent', allowedAgentIds, ttl, metadata: {}, ...(maxUses !== undefined && { maxUses }) } };
      const isNarrower = (wish.size ?? 0) <= size && (wish.ttl ?? 0) <= ttl && (wish.maxUses ?? 0) <= (maxUses ?? Infinity)
        && (wish.allowedAgentIds === undefined || (wish.allowedAgentIds.length > 0 && wish.allowedAgentIds.every((id) => allowedAgentIds.includes(id))));
      expect(codeOf(wish, plan)).toBe(isNarrower ? 'allowed' : 'plan_widened');
      if (!isNarrower) return;
      const release = narrow(plan, wish);
      expect(release).toEqual({
        ...plan.release, ttl: wish.ttl ?? ttl, allowedAgentIds: wish.allowedAgentIds ?? allowedAgentIds,
        ...((wish.maxUses ?? maxUses) !== undefined && { maxUses: wish.maxUses ?? maxUses }),
      });
      // Narrowing what was narrowed changes nothing.
      expect(narrow({ ...plan, release }, wish)).toEqual(release);
    }), { numRuns: 2_000 });
  });
});
