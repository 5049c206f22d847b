import { describe, expect, test } from 'vitest';
import { operationScope, requestDigest } from './operation.ts';

describe('operation', () => {
  test('a request is the same whatever the order of its fields', () => {
    expect(requestDigest('c', { a: 1, b: { c: 2, d: [1, 2] } })).toBe(requestDigest('c', { b: { d: [1, 2], c: 2 }, a: 1 }));
    expect(requestDigest('c', { a: [1, 2] })).not.toBe(requestDigest('c', { a: [2, 1] }));
    expect(requestDigest('c', { a: undefined })).toBe(requestDigest('c', {}));
    expect(requestDigest('c', {})).not.toBe(requestDigest('d', {}));
  });

  test('a key belongs to its caller', () => {
    const agent = { type: 'agent', agentId: 'x', ownerId: 'o', keyId: 'k' } as const;
    const hashes = [
      operationScope(agent, '10.0.0.1', 'key'),
      operationScope({ ...agent, agentId: 'y' }, '10.0.0.1', 'key'),
      operationScope({ type: 'owner', ownerId: 'x', sessionId: 's' }, '10.0.0.1', 'key'),
      operationScope({ type: 'anonymous' }, '10.0.0.1', 'key'),
      operationScope({ type: 'anonymous' }, '10.0.0.2', 'key'),
      operationScope(agent, '10.0.0.1', 'other'),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(operationScope({ ...agent, keyId: 'rotated' }, '10.0.0.9', 'key')).toBe(hashes[0]);
  });
});
