import { describe, expect, test } from 'vitest';
import { chooseRoute } from './geometry.ts';

const MiB = 1_024 ** 2;
const bounds = { maxBytes: 10 * 1_024 * MiB, partSizeMin: 5 * MiB, partSizeDefault: 16 * MiB, partSizeMax: 5 * 1_024 * MiB, maxParts: 10_000, maxParallelParts: 6, direct: false };
const route = (wanted: Parameters<typeof chooseRoute>[0]) => chooseRoute(wanted, bounds);

describe('the route of a planned transfer', () => {
  test('small files and streams of unknown size go by one request', () => {
    expect(route({ size: 1 }).lane).toBe('single');
    expect(route({})).toMatchObject({ lane: 'single', maxBytes: bounds.maxBytes });
    expect(route({}).geometry.partCount).toBeUndefined();
  });

  test('large files go in parts that cover them exactly', () => {
    const { lane, geometry } = route({ size: 100 * MiB + 1 });
    expect(lane).toBe('multipart');
    expect(geometry).toMatchObject({ partSize: 16 * MiB, partCount: 7 });
  });

  test('parts grow so that their number stays within the bound', () => {
    const narrow = { ...bounds, maxParts: 4 };
    const { geometry } = chooseRoute({ size: 1_000 * MiB }, narrow);
    expect(geometry.partSize * 4).toBeGreaterThanOrEqual(1_000 * MiB);
    expect(geometry.partCount).toBeLessThanOrEqual(4);
  });

  test('without an object store the direct lane falls back to multipart', () => {
    expect(route({ lane: 'direct', size: 10 }).lane).toBe('multipart');
  });

  test('with one it is taken when it is asked for, and falls back to multipart', () => {
    const reached = { ...bounds, direct: true };
    expect(chooseRoute({ lane: 'direct', size: 10 }, reached)).toMatchObject({ lane: 'direct', fallback: [{ lane: 'multipart' }], geometry: { partCount: 1 } });
    expect(chooseRoute({ size: 100 * MiB }, reached).lane).toBe('multipart');
    expect(() => chooseRoute({ lane: 'direct' }, reached)).toThrow(/size/);
  });

  test('bad wishes name their field', () => {
    expect(() => route({ lane: 'multipart' })).toThrow(/size/);
    expect(() => route({ size: 100 * MiB, partSize: MiB })).toThrow(/partSize/);
    expect(() => route({ size: bounds.maxBytes + 1 })).toThrow(/size/);
  });
});
