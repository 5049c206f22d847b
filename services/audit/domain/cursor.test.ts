/** What a cursor promises: it goes on from an exact place, for its own walk only. */
import { describe, expect, test } from 'vitest';
import { openCursor, sealCursor } from './cursor.ts';
import { filtersOf } from './filters.ts';

const keys = [Buffer.alloc(32, 1)];
const position = { occurredAt: '2026-03-01T12:00:00.123Z', id: '7f2c0d0e-94c4-4a8e-8a53-6a2cbd4f6f10' };
const filters = filtersOf('own_a', { limit: 50, eventType: 'share.created' });

describe('cursor', () => {
  test('opens to the place it was made for', () => {
    expect(openCursor(sealCursor(position, filters, keys), filters, keys)).toEqual(position);
  });

  test('fits the bound of the interface', () => {
    expect(sealCursor(position, filters, keys).length).toBeLessThan(1_024);
  });

  test('is good for another page size', () => {
    const cursor = sealCursor(position, filters, keys);
    expect(openCursor(cursor, filtersOf('own_a', { limit: 7, eventType: 'share.created' }), keys)).toEqual(position);
  });

  test('is refused for another owner and for other filters', () => {
    const cursor = sealCursor(position, filters, keys);
    expect(openCursor(cursor, filtersOf('own_b', { limit: 50, eventType: 'share.created' }), keys)).toBeUndefined();
    expect(openCursor(cursor, filtersOf('own_a', { limit: 50 }), keys)).toBeUndefined();
    expect(openCursor(cursor, filtersOf('own_a', { limit: 50, targetId: 'share.created' }), keys)).toBeUndefined();
  });

  test('is refused when it was made by other keys, changed, cut or garbage', () => {
    const cursor = sealCursor(position, filters, keys);
    const [body, mac] = cursor.split('.') as [string, string];
    const other = Buffer.from(JSON.stringify({ t: position.occurredAt, i: position.id, f: 'x' })).toString('base64url');
    for (const forged of [sealCursor(position, filters, [Buffer.alloc(32, 2)]), `cur_${other}.${mac}`, body, `${body}.`, 'cur_', '.', '', 'ünï', `${cursor}.x`]) {
      expect(openCursor(forged, filters, keys)).toBeUndefined();
    }
  });

  test('made by an older key still opens after rotation', () => {
    const cursor = sealCursor(position, filters, keys);
    expect(openCursor(cursor, filters, [Buffer.alloc(32, 9), ...keys])).toEqual(position);
  });
});
