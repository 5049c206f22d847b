import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkOpen, checkParts, etagOf, fitsSession, offsetOfPart, partsInSession, segmentsOf, sizeOfPart, uploadStates, type Part } from './upload.ts';

const upload = { size: 25, partSize: 10, partCount: 3, mainKey: 'main' };
const part = (partNumber: number, key = 'main', size = sizeOfPart(upload, partNumber)): Part => ({ partNumber, key, size, sha256: String(partNumber).repeat(64), etag: `etag-${partNumber}`, place: null });
const all = [part(1), part(2), part(3)];
const listed = all.map((one) => ({ partNumber: one.partNumber, etag: etagOf(one) }));
const pathsOf = (work: () => void) => {
  try {
    work();
    return 'allowed';
  } catch (error) {
    const { code, details } = error as { code: string; details: { errors?: { path: string }[] } };
    return [code, ...(details.errors ?? []).map(({ path }) => path)];
  }
};

describe('multipart upload', () => {
  test('every part but the last has the part size, the last the remainder', () => {
    expect([1, 2, 3].map((number) => sizeOfPart(upload, number))).toEqual([10, 10, 5]);
    expect(sizeOfPart({ size: 20, partSize: 10, partCount: 2 }, 2)).toBe(10);
    expect(() => sizeOfPart(upload, 4)).toThrowError(expect.objectContaining({ code: 'invalid_request' }));
  });

  test('the parts of any upload have its size together', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 700 }), (size, partSize) => {
      const partCount = Math.ceil(size / partSize);
      const sizes = Array.from({ length: partCount }, (_, index) => sizeOfPart({ size, partSize, partCount }, index + 1));
      expect(sizes.reduce((sum, one) => sum + one, 0)).toBe(size);
      expect(Math.min(...sizes)).toBeGreaterThan(0);
    }));
  });

  test('all parts with their etags make the whole', () => {
    expect(pathsOf(() => { checkParts(upload, all); })).toBe('allowed');
    expect(pathsOf(() => { checkParts(upload, all, listed); })).toBe('allowed');
    expect(pathsOf(() => { checkParts(upload, all, [...listed].reverse()); })).toBe('allowed');
  });

  test('a part that is missing, wrong or named twice is named in the refusal', () => {
    expect(pathsOf(() => { checkParts(upload, all.slice(1)); })).toEqual(['invalid_request', 'parts']);
    expect(pathsOf(() => { checkParts(upload, all, listed.slice(0, 2)); })).toEqual(['invalid_request', 'parts']);
    expect(pathsOf(() => { checkParts(upload, all, [...listed, listed[0]!]); })).toEqual(['invalid_request', 'parts']);
    expect(pathsOf(() => { checkParts(upload, all, [listed[0]!, { ...listed[1]!, etag: listed[0]!.etag }, listed[2]!]); })).toEqual(['invalid_request', 'parts.1']);
    expect(pathsOf(() => { checkParts(upload, all, [listed[0]!, listed[1]!, { ...listed[2]!, partNumber: 4 }]); })).toEqual(['invalid_request', 'parts.2']);
  });

  test('a part of another size is refused', () => {
    expect(pathsOf(() => { checkParts(upload, [part(1), part(2, 'main', 9), part(3)]); })).toEqual(['part_size_mismatch']);
  });

  test('an upload whose parts all are in their first place is one segment', () => {
    expect(segmentsOf(upload, [part(3), part(1), part(2)])).toEqual([{ key: 'main', offset: 0, size: 25 }]);
  });

  test('a replaced part is a segment of its own, between those of the main file', () => {
    expect(segmentsOf(upload, [part(1), part(2, 'spare'), part(3)])).toEqual([
      { key: 'main', offset: 0, size: 10 }, { key: 'spare', offset: 0, size: 10 }, { key: 'main', offset: 20, size: 5 },
    ]);
    expect(offsetOfPart(upload, part(3))).toBe(20);
    expect(offsetOfPart(upload, part(3, 'spare'))).toBe(0);
  });

  test('what an object store puts together has the parts of the main file only, and they are read where they lie in it', () => {
    const parts = [part(3), part(2, 'spare'), part(1)];
    const placed = partsInSession(upload, parts);
    expect(placed).toEqual([{ partNumber: 1, size: 10, etag: 'etag-1', place: 0 }, { partNumber: 3, size: 5, etag: 'etag-3', place: 10 }]);
    const sealed = parts.map((one) => ({ ...one, place: placed.find(({ partNumber }) => partNumber === one.partNumber)?.place ?? null }));
    expect(segmentsOf(upload, sealed)).toEqual([{ key: 'main', offset: 0, size: 10 }, { key: 'spare', offset: 0, size: 10 }, { key: 'main', offset: 10, size: 5 }]);
    const whole = all.map((one) => ({ ...one, place: (one.partNumber - 1) * 10 }));
    expect(segmentsOf(upload, whole)).toEqual([{ key: 'main', offset: 0, size: 25 }]);
  });

  test('a part that was never seen here has the etag of the object store, in quotes or not', () => {
    const direct = all.map((one) => ({ ...one, sha256: null }));
    expect(direct.map(etagOf)).toEqual(['etag-1', 'etag-2', 'etag-3']);
    expect(pathsOf(() => { checkParts(upload, direct, direct.map(({ partNumber, etag }) => ({ partNumber, etag: `"${etag}"` }))); })).toBe('allowed');
  });

  test('small parts are objects of their own, and so is an only one, unless clients send them to the store', () => {
    const large = 5 * 1_024 ** 2;
    expect(fitsSession({ lane: 'multipart', partSize: large, partCount: 2 })).toBe(true);
    expect(fitsSession({ lane: 'multipart', partSize: large - 1, partCount: 2 })).toBe(false);
    expect(fitsSession({ lane: 'multipart', partSize: large, partCount: 1 })).toBe(false);
    expect(fitsSession({ lane: 'direct', partSize: large, partCount: 1 })).toBe(true);
  });

  test.each(uploadStates)('parts come while an upload is initialized: %s', (state) => {
    const expected = { initialized: 'allowed', expired: ['upload_expired'], assembling: ['upload_state_conflict'], completing: ['upload_state_conflict'], completed: ['upload_state_conflict'], aborted: ['upload_state_conflict'] };
    expect(pathsOf(() => { checkOpen({ state }); })).toEqual(expected[state]);
  });
});
