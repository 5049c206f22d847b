/** What every blob driver must do. A driver's test calls this with a way to open a fresh one. */
import { createHash, randomBytes } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { BlobDriver, Segment } from './blobs.ts';

const MiB = 1024 ** 2;
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** A source that gives bytes in chunks of a size. */
function sourceOf(bytes: Buffer, chunkSize = 65_536): Readable {
  return Readable.from((function* chunks() {
    for (let at = 0; at < bytes.length; at += chunkSize) yield bytes.subarray(at, at + chunkSize);
  })(), { objectMode: false });
}

/** A sink that copies what it gets: a driver may use a chunk's memory again once it was taken. */
function sinkOf(delayMs = 0): { sink: Writable; bytes: () => Buffer } {
  const chunks: Buffer[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const take = () => { chunks.push(Buffer.from(chunk)); done(); };
      if (delayMs > 0) void setTimeout(delayMs).then(take);
      else setImmediate(take);
    },
  });
  return { sink, bytes: () => Buffer.concat(chunks) };
}

async function store(driver: BlobDriver, key: string, bytes: Buffer, offset = 0) {
  const ticket = await driver.ticketToWrite({ key, offset, maxBytes: bytes.length, size: bytes.length });
  return driver.write(ticket, sourceOf(bytes), { sha256: true });
}

/** Like `store`, but nobody says how much will come. */
async function stream(driver: BlobDriver, key: string, bytes: Buffer, maxBytes = 40 * MiB) {
  const ticket = await driver.ticketToWrite({ key, offset: 0, maxBytes });
  return driver.write(ticket, sourceOf(bytes), { sha256: true });
}

async function read(driver: BlobDriver, segments: Segment[], range?: { start: number; end: number }): Promise<Buffer> {
  const blob = await driver.open(await driver.ticketToRead(segments));
  const { sink, bytes } = sinkOf();
  await blob.pipe(range ?? { start: 0, end: blob.size }, sink).finally(() => blob.close());
  return bytes();
}

/** What a driver keeps its bytes in. Pieces share a file; an object is written whole, and seen by nobody before. */
export type Kept = 'files' | 'objects';

export function describeDriver(name: string, kept: Kept, openDriver: () => Promise<BlobDriver>): void {
  const ofFiles = test.runIf(kept === 'files');

  describe(`blob driver ${name}`, () => {
    test.each([0, 1, 65_535, 65_536, MiB - 1, MiB, MiB + 1, 3 * MiB + 1])('%i bytes come back as they were', async (size) => {
      const driver = await openDriver();
      const bytes = randomBytes(size);
      expect(await store(driver, 'whole', bytes)).toMatchObject({ size, crc32: crc32(bytes), sha256: sha256(bytes) });
      expect(sha256(await read(driver, [{ key: 'whole', offset: 0, size }]))).toBe(sha256(bytes));
      expect(await driver.hash([{ key: 'whole', offset: 0, size }])).toBe(sha256(bytes));
    });

    test.each([0, 1, MiB, 5 * MiB, 5 * MiB + 1, 13 * MiB + 7])('%i bytes that nobody announced come back as they were', async (size) => {
      const driver = await openDriver();
      const bytes = randomBytes(size);
      expect(await stream(driver, 'streamed', bytes)).toMatchObject({ size, crc32: crc32(bytes), sha256: sha256(bytes) });
      expect(sha256(await read(driver, [{ key: 'streamed', offset: 0, size }]))).toBe(sha256(bytes));
    });

    test('many tiny chunks come back as they were', async () => {
      const driver = await openDriver();
      const bytes = randomBytes(20_011);
      const ticket = await driver.ticketToWrite({ key: 'tiny', offset: 0, maxBytes: bytes.length });
      const written = await driver.write(ticket, sourceOf(bytes, 3), { sha256: false });
      expect(written).toMatchObject({ size: bytes.length, crc32: crc32(bytes) });
      expect(written.sha256).toBeUndefined();
      expect((await read(driver, [{ key: 'tiny', offset: 0, size: bytes.length }])).equals(bytes)).toBe(true);
    });

    ofFiles('parts written at their offsets, in any order and at once, make one blob', async () => {
      const driver = await openDriver();
      const bytes = randomBytes(5 * MiB + 17);
      await Promise.all([4, 2, 5, 0, 3, 1].map((part) => store(driver, 'parts', bytes.subarray(part * MiB, (part + 1) * MiB), part * MiB)));
      expect((await read(driver, [{ key: 'parts', offset: 0, size: bytes.length }])).equals(bytes)).toBe(true);
    });

    test('a range over several segments is exact to the byte', async () => {
      const driver = await openDriver();
      const bytes = randomBytes(300_000);
      await Promise.all([store(driver, 'first', bytes.subarray(0, 100_000)), store(driver, 'second', bytes.subarray(100_000))]);
      const segments = [{ key: 'first', offset: 0, size: 100_000 }, { key: 'second', offset: 0, size: 50_000 }, { key: 'second', offset: 50_000, size: 150_000 }];
      for (const [start, end] of [[0, 300_000], [0, 1], [299_999, 300_000], [99_999, 100_001], [120_000, 160_000], [7, 7]] as const) {
        expect((await read(driver, segments, { start, end })).equals(bytes.subarray(start, end))).toBe(true);
      }
      expect(await driver.hash(segments)).toBe(sha256(bytes));
    });

    test('a blob of very many pieces is read whole', async () => {
      const driver = await openDriver();
      const bytes = randomBytes(100_000);
      const segments = Array.from({ length: 100 }, (_, index) => ({ key: `piece${index}`, offset: 0, size: 1_000 }));
      await Promise.all(segments.map(({ key }, index) => store(driver, key, bytes.subarray(index * 1_000, (index + 1) * 1_000))));
      expect((await read(driver, segments)).equals(bytes)).toBe(true);
    });

    test('one byte too many is refused, announced or not, and nothing of it can be read', async () => {
      const driver = await openDriver();
      for (const [key, size] of [['exact', 10], ['streamed', undefined]] as const) {
        const ticket = await driver.ticketToWrite({ key, offset: 0, maxBytes: 10, size });
        await expect(driver.write(ticket, sourceOf(Buffer.alloc(11, 'a')), { sha256: false })).rejects.toMatchObject({ code: 'payload_too_large' });
        await expect(read(driver, [{ key, offset: 0, size: 10 }])).rejects.toThrow();
      }
    });

    ofFiles('one byte too many never reaches what lies behind', async () => {
      const driver = await openDriver();
      await store(driver, 'bounded', Buffer.alloc(10, 'b'), 10);
      const ticket = await driver.ticketToWrite({ key: 'bounded', offset: 0, maxBytes: 10 });
      await expect(driver.write(ticket, sourceOf(Buffer.alloc(11, 'a')), { sha256: false })).rejects.toMatchObject({ code: 'payload_too_large' });
      expect((await read(driver, [{ key: 'bounded', offset: 10, size: 10 }])).toString()).toBe('b'.repeat(10));
    });

    test('a refused source is left open, so that the refusal can be answered', async () => {
      const driver = await openDriver();
      const ticket = await driver.ticketToWrite({ key: 'refused', offset: 0, maxBytes: 10 });
      const source = sourceOf(randomBytes(4 * MiB));
      await expect(driver.write(ticket, source, { sha256: false })).rejects.toMatchObject({ code: 'payload_too_large' });
      expect(source.destroyed).toBe(false);
    });

    test('a source that breaks makes the write fail', async () => {
      const driver = await openDriver();
      const ticket = await driver.ticketToWrite({ key: 'broken', offset: 0, maxBytes: 10 * MiB });
      const failing = Readable.from((function* chunks() { yield Buffer.alloc(MiB); throw new Error('connection reset'); })(), { objectMode: false });
      await expect(driver.write(ticket, failing, { sha256: false })).rejects.toThrow('connection reset');
      const closing = new Readable({ read() { this.push(Buffer.alloc(100)); this.destroy(); } });
      await expect(driver.write(ticket, closing, { sha256: false })).rejects.toThrow();
    });

    test('a source that leaves before its end leaves what was there as it was', async () => {
      const driver = await openDriver();
      const bytes = randomBytes(MiB);
      await store(driver, 'kept', bytes);
      const ticket = await driver.ticketToWrite({ key: kept === 'files' ? 'other' : 'kept', offset: 0, maxBytes: MiB, size: MiB });
      const failing = Readable.from((function* chunks() { yield Buffer.alloc(MiB / 2); throw new Error('connection reset'); })(), { objectMode: false });
      await expect(driver.write(ticket, failing, { sha256: false })).rejects.toThrow();
      expect((await read(driver, [{ key: 'kept', offset: 0, size: MiB }])).equals(bytes)).toBe(true);
    });

    test('a source that says nothing is given up', async () => {
      const driver = await openDriver();
      const ticket = await driver.ticketToWrite({ key: 'idle', offset: 0, maxBytes: 10 });
      const silent = new Readable({ read() { /* never */ } });
      await expect(driver.write(ticket, silent, { sha256: false, idleMs: 50 })).rejects.toMatchObject({ code: 'deadline_exceeded' });
    });

    ofFiles('what was removed before the writer came is not made again', async () => {
      const driver = await openDriver();
      const ticket = await driver.ticketToWrite({ key: 'late', offset: 0, maxBytes: 10 });
      await driver.remove('late');
      await expect(driver.write(ticket, sourceOf(Buffer.from('late')), { sha256: false })).rejects.toMatchObject({ code: 'upload_expired' });
      expect(await driver.lastTouched('late')).toBeUndefined();
    });

    test.each(['../escape', '..', '/etc/passwd', 'a/b', 'a\\b', 'a\0b', '', 'a'.repeat(200)])('the key %j is refused', async (key) => {
      const driver = await openDriver();
      await expect(driver.ticketToWrite({ key, offset: 0, maxBytes: 1 })).rejects.toThrow();
      if (kept === 'files') await expect(driver.write({ driver: 'fs', key, offset: 0, maxBytes: 1 }, sourceOf(Buffer.from('x')), { sha256: false })).rejects.toThrow();
      await expect(read(driver, [{ key, offset: 0, size: 1 }])).rejects.toThrow();
      await expect(driver.remove(key)).rejects.toThrow();
    });

    test('a blob that is removed while it is being read is read to its end', async () => {
      const driver = await openDriver();
      const bytes = randomBytes(3 * MiB);
      await store(driver, 'read', bytes);
      const blob = await driver.open(await driver.ticketToRead([{ key: 'read', offset: 0, size: bytes.length }]));
      const { sink, bytes: taken } = sinkOf(10);
      const piping = blob.pipe({ start: 0, end: bytes.length }, sink);
      while (taken().length === 0) await setTimeout(5);
      await driver.remove('read');
      await piping;
      await blob.close();
      expect(taken().equals(bytes)).toBe(true);
      await expect(read(driver, [{ key: 'read', offset: 0, size: 1 }])).rejects.toThrow();
    });

    ofFiles('a blob that is removed while it is open is read to its end', async () => {
      const driver = await openDriver();
      const bytes = randomBytes(3 * MiB);
      await store(driver, 'removed', bytes);
      const blob = await driver.open(await driver.ticketToRead([{ key: 'removed', offset: 0, size: bytes.length }]));
      await driver.remove('removed');
      await driver.remove('removed');
      const { sink, bytes: taken } = sinkOf(1);
      await blob.pipe({ start: 0, end: bytes.length }, sink);
      await blob.close();
      await blob.close();
      expect(taken().equals(bytes)).toBe(true);
      await expect(read(driver, [{ key: 'removed', offset: 0, size: 1 }])).rejects.toThrow();
    });

    test('a sink that closes early ends the reading at once', async () => {
      const driver = await openDriver();
      await store(driver, 'closing', randomBytes(8 * MiB));
      const blob = await driver.open(await driver.ticketToRead([{ key: 'closing', offset: 0, size: 8 * MiB }]));
      const sink = new Writable({ write() { /* never taken */ } });
      const piping = blob.pipe({ start: 0, end: 8 * MiB }, sink);
      await setTimeout(20);
      sink.destroy();
      await expect(piping).rejects.toThrow();
      await blob.close();
    });

    test('a blob shorter than its ticket says is a failure, not a short answer', async () => {
      const driver = await openDriver();
      await store(driver, 'short', Buffer.alloc(10));
      await expect(read(driver, [{ key: 'short', offset: 0, size: 11 }])).rejects.toThrow();
      await expect(driver.hash([{ key: 'short', offset: 0, size: 11 }])).rejects.toThrow();
    });

    test('removing what was never there does no harm, and twice neither', async () => {
      const driver = await openDriver();
      await driver.remove('nothing');
      await store(driver, 'gone', Buffer.from('x'));
      await driver.remove('gone');
      await driver.remove('gone');
      expect(await driver.lastTouched('gone')).toBeUndefined();
    });

    test('a write shows when it last happened', async () => {
      const driver = await openDriver();
      await store(driver, 'touched', Buffer.from('x'));
      expect(Math.abs((await driver.lastTouched('touched'))! - Date.now())).toBeLessThan(5_000);
    });

    if (kept === 'objects') describeObjects(openDriver);
  });
}

/** What only a store of objects does. */
function describeObjects(openDriver: () => Promise<BlobDriver>): void {
  const part = (driver: BlobDriver, key: string, session: string, partNumber: number, bytes: Buffer) =>
    driver.ticketToWrite({ key, offset: 0, maxBytes: bytes.length, size: bytes.length, part: { session, partNumber } })
      .then((ticket) => driver.write(ticket, sourceOf(bytes), { sha256: false }));

  async function partsIn(driver: BlobDriver, key: string, sizes: readonly number[]) {
    const bytes = sizes.map((size) => randomBytes(size));
    const session = await driver.objects!.begin(key);
    const parts = await Promise.all(bytes.map(async (each, index) => {
      const { size, etag } = await part(driver, key, session, index + 1, each);
      return { partNumber: index + 1, size, etag: etag! };
    }));
    return { session, parts, bytes: Buffer.concat(bytes) };
  }

  test('parts sent at once make one object, listed as they are stored, and completing again does no harm', async () => {
    const driver = await openDriver();
    const { session, parts, bytes } = await partsIn(driver, 'together', [5 * MiB, 5 * MiB, 17]);
    expect(await driver.objects!.listParts('together', session)).toEqual(parts);
    for (const _time of [1, 2]) await driver.objects!.complete('together', session, parts);
    expect(sha256(await read(driver, [{ key: 'together', offset: 0, size: bytes.length }]))).toBe(sha256(bytes));
  });

  test('a part that was replaced is noticed', async () => {
    const driver = await openDriver();
    const { session, parts } = await partsIn(driver, 'replaced', [5 * MiB, 17]);
    await part(driver, 'replaced', session, 1, randomBytes(5 * MiB));
    await expect(driver.objects!.complete('replaced', session, parts)).rejects.toMatchObject({ code: 'upload_state_conflict' });
  });

  test('what is cancelled or removed is gone, its parts too', async () => {
    const driver = await openDriver();
    const { session, parts } = await partsIn(driver, 'cancelled', [17]);
    await driver.objects!.cancel('cancelled', session);
    await driver.objects!.cancel('cancelled', session);
    expect(await driver.objects!.listParts('cancelled', session)).toBeUndefined();
    await expect(driver.objects!.complete('cancelled', session, parts)).rejects.toMatchObject({ code: 'upload_expired' });
    const forgotten = await driver.objects!.begin('forgotten');
    await driver.remove('forgotten');
    expect(await driver.objects!.listParts('forgotten', forgotten)).toBeUndefined();
  });

  test.each([['small', [3, 0, 70_000]], ['large', [5 * MiB, 5 * MiB + 1, 9]]])('%s pieces are joined to one object', async (_title, sizes) => {
    const driver = await openDriver();
    const pieces = sizes.map((size, index) => ({ key: `from${index}`, offset: 0, size }));
    const bytes = pieces.map(({ size }) => randomBytes(size));
    await Promise.all(pieces.map(({ key }, index) => store(driver, key, bytes[index]!)));
    const whole = await driver.objects!.join(pieces, 'joined');
    expect(whole).toEqual({ key: 'joined', offset: 0, size: Buffer.concat(bytes).length });
    expect((await read(driver, [whole])).equals(Buffer.concat(bytes))).toBe(true);
  });

  test('fewer bytes than were announced make no object', async () => {
    const driver = await openDriver();
    const ticket = await driver.ticketToWrite({ key: 'fewer', offset: 0, maxBytes: 10, size: 10 });
    await expect(driver.write(ticket, sourceOf(Buffer.alloc(9)), { sha256: false })).rejects.toMatchObject({ code: 'part_size_mismatch' });
    expect(await driver.lastTouched('fewer')).toBeUndefined();
  });

  test('an address takes exactly the bytes that it was signed for', async () => {
    const driver = await openDriver();
    const session = await driver.objects!.begin('signed');
    const url = await driver.objects!.signPartForClient('signed', 10, { session, partNumber: 1 }, 60);
    for (const size of [9, 11]) expect((await fetch(url, { method: 'PUT', body: new Uint8Array(size) })).status).toBe(403);
    expect((await fetch(url, { method: 'PUT', body: new Uint8Array(10) })).status).toBe(200);
    expect((await driver.objects!.listParts('signed', session))!.map(({ size }) => size)).toEqual([10]);
  });

  test('a writer whose blob was given up stops, and what a late one made goes with the next removal', async () => {
    const driver = await openDriver();
    await expect(stream(driver, 'unwanted', randomBytes(6 * MiB))).rejects.toMatchObject({ code: 'upload_expired' });
    const ticket = await driver.ticketToWrite({ key: 'late', offset: 0, maxBytes: 4, size: 4 });
    await driver.remove('late');
    await driver.write(ticket, sourceOf(Buffer.from('late')), { sha256: false });
    await driver.remove('late');
    expect(await driver.lastTouched('late')).toBeUndefined();
  });
}
