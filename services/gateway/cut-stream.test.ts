import { PassThrough, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { cutStream, type CutOptions } from './cut-stream.ts';
import { paceAfter } from './domain/piece-pace.ts';

const never = { quietMs: Infinity, ageMs: Infinity };
const cut = (source: Readable, options: Partial<CutOptions> = {}) => cutStream(source, { pieceBytes: 1_000, pace: () => never, idleMs: 60_000, ...options });

describe('a stream that is cut', () => {
  test('comes in full pieces and a rest', async () => {
    const source = new PassThrough();
    const cutting = cut(source, { pieceBytes: 4 });
    for (const chunk of ['ab', 'cd', 'ef', 'g']) source.write(chunk);
    source.end();
    expect([await text((await cutting.next())!.stream), await text((await cutting.next())!.stream)]).toEqual(['abcd', 'efg']);
    expect(await cutting.next()).toBeUndefined();
  });

  test('gives what came as a piece when nothing more comes', async () => {
    const source = new PassThrough();
    const cutting = cut(source, { pace: () => ({ quietMs: 5, ageMs: 60_000 }) });
    source.write('first');
    expect(await text((await cutting.next())!.stream)).toBe('first');
    source.end('second');
    expect(await text((await cutting.next())!.stream)).toBe('second');
  });

  test('gives what came as a piece when it is old, though more comes', async () => {
    const source = new PassThrough();
    const cutting = cut(source, { pieceBytes: Infinity, pace: () => ({ quietMs: 60_000, ageMs: 20 }) });
    const drip = setInterval(() => source.write('.'), 2);
    expect(await text((await cutting.next())!.stream)).toMatch(/^\.+$/);
    clearInterval(drip);
  });

  test('that breaks keeps what came, and then says so', async () => {
    const source = new PassThrough();
    const cutting = cut(source);
    source.write('kept');
    const piece = (await cutting.next())!.stream;
    source.destroy(new Error('broken'));
    expect(await text(piece)).toBe('kept');
    await expect(cutting.next()).rejects.toThrow('broken');
  });

  test('is given up when no byte comes for too long', async () => {
    await expect(cut(new PassThrough(), { idleMs: 5 }).next()).rejects.toMatchObject({ code: 'deadline_exceeded' });
  });

  test('is held back while its piece is not read', async () => {
    const source = new PassThrough();
    const cutting = cut(source, { pieceBytes: Infinity });
    source.on('error', () => undefined);
    let taken = 0;
    const chunk = Buffer.alloc(64 * 1024);
    const next = cutting.next();
    while (source.write(chunk) || taken < 4) { taken += 1; await setImmediate(); if (taken > 100) break; }
    expect((await next)!.stream.readableLength).toBeLessThanOrEqual(128 * 1024);
    expect(taken).toBeLessThan(100);
  });
});

describe('the pace of pieces', () => {
  test('is slower the more there are, to a bound where they merge', () => {
    expect(paceAfter(0, true, 20)).toEqual({ quietMs: 20, ageMs: 200 });
    expect(paceAfter(1_000, true, 20).quietMs).toBe(40);
    expect(paceAfter(1_000_000, true, 20)).toEqual({ quietMs: 250, ageMs: 250 });
    expect(paceAfter(1_000_000, true, 1_000).quietMs).toBe(1_000);
  });

  test('comes to full pieces only where they do not', () => {
    expect(paceAfter(9_999, false, 20).quietMs).toBeGreaterThan(10_000);
    expect(paceAfter(10_000, false, 20)).toEqual({ quietMs: Infinity, ageMs: Infinity });
  });
});
