import { expect, test } from 'vitest';
import { openShareCursor, sealShareCursor, type Walk } from './share-cursor.ts';

const keys = [Buffer.alloc(32, 1)];
const position = { createdAt: '2026-03-01T12:00:00.123456Z', id: 'shr_1' };
const walk: Walk = { whose: { ownerId: 'o' }, filters: { mode: 'agent' } };

test('a cursor opens to the place it was made for, also after rotation', () => {
  expect(openShareCursor(sealShareCursor(position, walk, keys), walk, keys)).toEqual(position);
  expect(openShareCursor(sealShareCursor(position, walk, keys), walk, [Buffer.alloc(32, 2), ...keys])).toEqual(position);
});

test.each<[string, Walk]>([
  ['another owner', { ...walk, whose: { ownerId: 'p' } }],
  ['an agent of the owner', { ...walk, whose: { ownerId: 'o', agentId: 'a' } }],
  ['another filter', { ...walk, filters: { mode: 'open' } }],
  ['one more filter', { ...walk, filters: { mode: 'agent', state: 'active' } }],
  ['the same word in another filter', { ...walk, filters: { targetId: 'agent' } }],
])('a cursor is refused for %s', (_title, other) => {
  expect(openShareCursor(sealShareCursor(position, walk, keys), other, keys)).toBeUndefined();
});

test('a cursor of other keys, a changed one and garbage are refused', () => {
  const cursor = sealShareCursor(position, walk, keys);
  for (const forged of [sealShareCursor(position, walk, [Buffer.alloc(32, 2)]), `${cursor}x`, cursor.slice(0, -1), 'cur_', '', 'ünï.x']) {
    expect(openShareCursor(forged, walk, keys)).toBeUndefined();
  }
});
