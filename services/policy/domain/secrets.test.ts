import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { fitsFetch, openGrant, sealGrant } from './grant.ts';
import { hashPassword, isPassword } from './password.ts';
import { operationOf } from '../../../shared/operation.ts';
import { openAnswer, sealAnswer } from './sealed-answer.ts';

const [key, oldKey] = [randomBytes(32), randomBytes(32)];
const grant = { grantId: 'gnt_1', shareId: 'shr_1', targetId: 'trf_1', agentId: 'a', exp: 1_000 };
const fetch = { targetId: 'trf_1', now: 999_000 };

describe('a grant token', () => {
  test('opens under the key that made it, also when it is an older one', () => {
    expect(openGrant(sealGrant(grant, [key]), [key])).toEqual(grant);
    expect(openGrant(sealGrant(grant, [oldKey]), [key, oldKey])).toEqual(grant);
  });

  test('is refused when a single character differs, or another key made it', () => {
    const token = sealGrant(grant, [key]);
    for (let at = 0; at < token.length; at += 7) {
      const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
      expect(() => openGrant(changed, [key])).toThrow(expect.objectContaining({ code: 'invalid_grant' }));
    }
    expect(() => openGrant(sealGrant(grant, [oldKey]), [key])).toThrow(expect.objectContaining({ code: 'invalid_grant' }));
  });

  test.each([
    ['its own target', fetch, true],
    ['its own share', { ...fetch, shareId: 'shr_1' }, true],
    ['another target', { ...fetch, targetId: 'trf_2' }, false],
    ['another share', { ...fetch, shareId: 'shr_2' }, false],
    ['its expiry', { ...fetch, now: 1_000_000 }, false],
  ])('at %s it fits: %#', (_case, other, fits) => expect(fitsFetch(grant, other)).toBe(fits));
});

describe('a password', () => {
  test('matches its own hash only, and nobody’s when there is none', async () => {
    const stored = await hashPassword('correct horse');
    expect(stored).not.toContain('correct');
    expect(await isPassword('correct horse', stored)).toBe(true);
    expect(await isPassword('wrong', stored)).toBe(false);
    expect(await isPassword('correct horse', undefined)).toBe(false);
  });
});

describe('a sealed answer', () => {
  const request = { caller: { type: 'owner', ownerId: 'o', sessionId: 's' }, operationId: 'op', contract: 'c', input: { a: 1, b: 2 } } as const;
  const operation = operationOf(request);

  test('opens for its operation only, and shows nothing of itself', () => {
    const sealed = sealAnswer({ key: 'agk_secret' }, operation, [oldKey]);
    expect(sealed.includes('agk_secret')).toBe(false);
    expect(openAnswer(sealed, operation, [key, oldKey])).toEqual({ key: 'agk_secret' });
    expect(openAnswer(sealed, { ...operation, scope: 'other' }, [key, oldKey])).toBeUndefined();
  });

  test('the order of fields does not make another request, their values do', () => {
    expect(operationOf({ ...request, input: { b: 2, a: 1 } })).toEqual(operation);
    expect(operationOf({ ...request, input: { a: 1, b: 3 } }).requestDigest).not.toBe(operation.requestDigest);
  });

  test('callers do not share operation ids', () => {
    const other = operationOf({ ...request, caller: { type: 'owner', ownerId: 'p', sessionId: 's' } });
    expect(other.scope).not.toBe(operation.scope);
  });
});
