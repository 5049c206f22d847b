/** Windows of requests: room and waiting, by arithmetic alone. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { roomOf, waitOf, type RateWindow } from './rate-window.ts';

const limits = { limit: 10, window: 60 };

test.each([
  ['a new window', { used: 0, previous: 0, elapsed: 0 }, 10],
  ['used in part', { used: 4, previous: 0, elapsed: 5 }, 6],
  ['right after a full window', { used: 0, previous: 10, elapsed: 0 }, 0],
  ['half a window after a full one', { used: 0, previous: 10, elapsed: 30 }, 5],
  ['a limit that was lowered', { used: 20, previous: 0, elapsed: 1 }, 0],
])('room: %s', (_title, present, room) => {
  expect(roomOf(present, limits)).toBe(room);
});

test.each([
  ['room is left', { used: 9, previous: 0, elapsed: 5 }, 0],
  ['full: as soon as the next window looks back at a little less than all', { used: 10, previous: 0, elapsed: 20 }, 40],
  ['in the window after a full one, its share used', { used: 5, previous: 10, elapsed: 29 }, 1],
  ['a limit that was lowered', { used: 20, previous: 0, elapsed: 0 }, 90],
])('waiting: %s', (_title, present, seconds) => {
  expect(waitOf(present, limits)).toBeCloseTo(seconds, 6);
});

/** The window as it is `seconds` later, when nothing more is used. */
function later({ used, previous, elapsed }: RateWindow, seconds: number, window: number): RateWindow {
  const then = elapsed + seconds;
  if (then < window) return { used, previous, elapsed: then };
  return { used: 0, previous: used, elapsed: then - window };
}

test('after the wait there is room, and no sooner', () => {
  const anyWindow = fc.record({ used: fc.nat(50), previous: fc.nat(50), elapsed: fc.double({ min: 0, max: 59.9, noNaN: true }), limit: fc.integer({ min: 1, max: 50 }) });
  fc.assert(fc.property(anyWindow, ({ limit, ...present }) => {
    fc.pre(present.previous <= limit);
    const wait = waitOf(present, { limit, window: 60 });
    expect(roomOf(later(present, wait + 1e-6, 60), { limit, window: 60 })).toBeGreaterThan(0);
    if (wait > 1e-3) expect(roomOf(later(present, wait - 1e-3, 60), { limit, window: 60 })).toBe(0);
  }), { numRuns: 2_000 });
});
