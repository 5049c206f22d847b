/** How a query's times become the times that events are stored with. */
import { describe, expect, test } from 'vitest';
import { digestOf, filtersOf } from './filters.ts';

describe('filters', () => {
  test('one instant has one spelling', () => {
    const zulu = filtersOf('own_a', { limit: 50, from: '2026-03-01T12:00:00Z' });
    const offset = filtersOf('own_a', { limit: 50, from: '2026-03-01T14:00:00.000+02:00' });
    expect(zulu.from).toBe('2026-03-01T12:00:00.000Z');
    expect(digestOf(zulu)).toBe(digestOf(offset));
  });

  test('a time finer than a millisecond is rounded up, never past an event it includes', () => {
    expect(filtersOf('own_a', { limit: 50, from: '2026-03-01T12:00:00.0005Z' }).from).toBe('2026-03-01T12:00:00.001Z');
    expect(filtersOf('own_a', { limit: 50, to: '2026-03-01T12:00:00.001000Z' }).to).toBe('2026-03-01T12:00:00.001Z');
  });

  test('years outside of what the database holds are brought inside', () => {
    expect(filtersOf('own_a', { limit: 50, from: '0000-01-01T00:00:00Z', to: '9999-12-31T23:59:59-12:00' })).toMatchObject({
      from: '1970-01-01T00:00:00.000Z',
      to: '9999-12-31T23:59:59.999Z',
    });
  });

  test('from after to is refused by name; the same time is an empty stretch', () => {
    expect(() => filtersOf('own_a', { limit: 50, from: '2026-03-02T00:00:00Z', to: '2026-03-01T00:00:00Z' })).toThrow('from: must not be after to');
    expect(() => filtersOf('own_a', { limit: 50, from: '2026-03-01T00:00:00Z', to: '2026-03-01T00:00:00Z' })).not.toThrow();
  });
});
