import { describe, expect, test } from 'vitest';
import { operationHash, requestDigest } from './operation.ts';

describe('operation', () => {
  test('a request is the same whatever the order of its fields', () => {
    expect(requestDigest({ a: 1, b: { c: 2, d: [1, 2] } })).toBe(requestDigest({ b: { d: [1, 2], c: 2 }, a: 1 }));
    expect(requestDigest({ a: [1, 2] })).not.toBe(requestDigest({ a: [2, 1] }));
    expect(requestDigest({ a: undefined })).toBe(requestDigest({}));
  });

  test('a key belongs to its caller', () => {
    const agent = { type: 'agent', agentId: 'x', ownerId: 'o', keyId: 'k' } as const;
    const hashes = [
      operationHash(agent, '10.0.0.1', 'key'),
      operationHash({ ...agent, agentId: 'y' }, '10.0.0.1', 'key'),
      operationHash({ type: 'owner', ownerId: 'x', sessionId: 's' }, '10.0.0.1', 'key'),
      operationHash({ type: 'anonymous' }, '10.0.0.1', 'key'),
      operationHash({ type: 'anonymous' }, '10.0.0.2', 'key'),
      operationHash(agent, '10.0.0.1', 'other'),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(operationHash({ ...agent, keyId: 'rotated' }, '10.0.0.9', 'key')).toBe(hashes[0]);
  });
});
