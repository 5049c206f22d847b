import { describe, expect, test } from 'vitest';
import { evaluate, parseRange } from './conditions.ts';

const stored = { etag: '"trf_1"', lastModified: Date.parse('2026-01-01T00:00:00.500Z'), size: 10 };
const at = 'Thu, 01 Jan 2026 00:00:00 GMT';
const before = 'Wed, 31 Dec 2025 00:00:00 GMT';

describe('ranges', () => {
  test.each([
    ['bytes=0-3', { start: 0, end: 3 }],
    ['bytes=4-', { start: 4, end: 9 }],
    ['bytes=-4', { start: 6, end: 9 }],
    ['bytes=-99', { start: 0, end: 9 }],
    ['bytes=9-99', { start: 9, end: 9 }],
    ['BYTES=0-0', { start: 0, end: 0 }],
  ])('%s', (header, range) => expect(parseRange(header, 10)).toEqual(range));

  test.each(['bytes=10-', 'bytes=10-12', 'bytes=-0'])('%s lies outside', (header) => expect(parseRange(header, 10)).toBe('unsatisfiable'));

  test.each(['bytes=5-2', 'bytes=-', 'bytes=a-b', 'bytes=0-1,3-4', 'lines=0-1', '', 'bytes', 'bytes=0x1-2', 'bytes=--1', `bytes=${'0-1,'.repeat(10_000)}0-1`])(
    'malformed, inverted or several ranges are ignored: %.20s', (header) => expect(parseRange(header, 10)).toBe('ignored'));

  test('nothing of an empty file can be asked for', () => expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable'));
});

describe('conditions', () => {
  test.each([
    [{}, 200],
    [{ range: 'bytes=0-1' }, 206],
    [{ range: 'bytes=50-' }, 416],
    [{ ifNoneMatch: '"trf_1"' }, 304],
    [{ ifNoneMatch: 'W/"trf_1", "x"' }, 304],
    [{ ifNoneMatch: '*' }, 304],
    [{ ifNoneMatch: '"other"' }, 200],
    [{ ifNoneMatch: '"other"', ifModifiedSince: at }, 200],
    [{ ifModifiedSince: at }, 304],
    [{ ifModifiedSince: before }, 200],
    [{ ifModifiedSince: 'nonsense' }, 200],
    [{ ifMatch: '"trf_1"' }, 200],
    [{ ifMatch: 'W/"trf_1"' }, 412],
    [{ ifMatch: '"other"', range: 'bytes=0-1' }, 412],
    [{ ifUnmodifiedSince: at }, 200],
    [{ ifUnmodifiedSince: before }, 412],
    [{ range: 'bytes=0-1', ifRange: '"trf_1"' }, 206],
    [{ range: 'bytes=0-1', ifRange: 'W/"trf_1"' }, 200],
    [{ range: 'bytes=0-1', ifRange: '"other"' }, 200],
    [{ range: 'bytes=0-1', ifRange: at }, 206],
    [{ range: 'bytes=0-1', ifRange: before }, 200],
    [{ range: 'bytes=50-', ifRange: '"other"' }, 200],
  ])('%j gets %i', (conditions, status) => expect(evaluate(conditions, stored).status).toBe(status));
});
