/** Which months a walk begins with, are made ahead, and are dropped. */
import { describe, expect, test } from 'vitest';
import { keptSince, monthAt, monthsAhead, recentSince } from './months.ts';

const now = Date.parse('2026-01-31T23:59:59.999Z');
const filters = { ownerId: 'own_a' };

describe('months', () => {
  test('a month begins in UTC, across years', () => {
    expect(monthAt(now, 0)).toBe('2026-01-01T00:00:00.000Z');
    expect(monthAt(now, -1)).toBe('2025-12-01T00:00:00.000Z');
    expect(monthAt(now + 1, 0)).toBe('2026-02-01T00:00:00.000Z');
    expect(monthsAhead(now)).toEqual(['2026-01-01T00:00:00.000Z', '2026-02-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z']);
  });

  test('a walk looks first at the month it stands in and the one before', () => {
    expect(recentSince(filters, undefined, now)).toBe('2025-12-01T00:00:00.000Z');
    expect(recentSince({ ...filters, to: '2024-03-01T00:00:00.000Z' }, undefined, now)).toBe('2024-02-01T00:00:00.000Z');
    expect(recentSince({ ...filters, to: '9999-12-31T23:59:59.999Z' }, undefined, now)).toBe('2025-12-01T00:00:00.000Z');
    expect(recentSince(filters, { occurredAt: '2024-03-01T00:00:00.000Z', id: '' }, now)).toBe('2024-02-01T00:00:00.000Z');
    expect(recentSince({ ...filters, to: '1970-01-01T00:00:00.000Z' }, undefined, now)).toBe('1969-12-01T00:00:00.000Z');
  });

  test('what is kept is counted in days, and 0 keeps everything', () => {
    expect(keptSince(now, 31)).toBe('2025-12-31T23:59:59.999Z');
    expect(keptSince(now, 100_000)).toBe('1970-01-01T00:00:00.000Z');
    expect(keptSince(now, 0)).toBeUndefined();
  });
});
