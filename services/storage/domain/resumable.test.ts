import { describe, expect, test } from 'vitest';
import { checkNewSize, checkThere, isWhole } from './resumable.ts';

const open = { state: 'open', size: null, received: 5, maxBytes: 10 } as const;

describe('the size of a resumable upload', () => {
  test('is said once, between what is stored and what is allowed', () => {
    for (const size of [5, 10]) expect(() => checkNewSize(open, size)).not.toThrow();
    expect(() => checkNewSize({ ...open, size: 7 }, 7)).not.toThrow();
    expect(() => checkNewSize(open, 4)).toThrow('at least 5');
    expect(() => checkNewSize(open, 11)).toThrow('at most 10');
    expect(() => checkNewSize({ ...open, size: 7 }, 8)).toThrow('was said to be 7');
    expect(() => checkNewSize({ ...open, state: 'completed', size: 5 }, 5)).toThrow('completed');
  });

  test('makes it whole when so much is stored', () => {
    expect([isWhole({ size: 5, received: 5 }), isWhole({ size: 0, received: 0 }), isWhole({ size: null, received: 0 }), isWhole({ size: 6, received: 5 })]).toEqual([true, true, false, false]);
  });
});

test('an upload that its sender ended is gone, one that ran out of time says so', () => {
  for (const state of ['open', 'completed'] as const) expect(() => checkThere({ state })).not.toThrow();
  expect(() => checkThere({ state: 'aborted' })).toThrow(expect.objectContaining({ code: 'multipart_upload_not_found' }));
  expect(() => checkThere({ state: 'expired' })).toThrow(expect.objectContaining({ code: 'upload_expired' }));
});
