/** Byte ranges of a transfer, wherever its bytes are kept (interface chapter: Transfer bytes). */
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { multipartLane, partsOf, smallestPart } from '../support/multipart-lane.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, upload } = exchange;
const lane = multipartLane(exchange);

interface Stored { readonly url: string; readonly id: string; readonly bytes: Buffer }
const stored: Record<string, Stored> = {};

/** A file whose parts were replaced, so that they lie in different places. */
async function scattered(): Promise<Stored> {
  const parts = [...partsOf(2), randomBytes(1_000)] as [Buffer, Buffer, Buffer];
  const { uploadId } = await lane.begin(2 * smallestPart + 1_000);
  await lane.sendAll(uploadId, [parts[0], randomBytes(smallestPart), parts[2]]);
  await lane.part(uploadId, 2, parts[1]);
  const { json } = await lane.complete(uploadId);
  return { url: json.downloadUrl, id: json.id, bytes: Buffer.concat(parts) };
}

beforeAll(async () => {
  for (const [name, bytes] of [['a small file', Buffer.from('0123456789')], ['a large file', randomBytes(100_000)]] as const) {
    const { id, downloadUrl: url } = await upload(bytes);
    stored[name] = { id, url, bytes };
  }
  stored['a file of scattered parts'] = await scattered();
});

const get = ({ url }: Stored, range: string, headers: Record<string, string> = {}) => call(url, { headers: { Range: range, ...headers } });

describe.each(['a small file', 'a large file', 'a file of scattered parts'])('GET /api/dl/{id} with Range, %s', (name) => {
  test('answers exactly the range, its length and its place', async () => {
    const file = stored[name]!;
    const { length } = file.bytes;
    const cases: [string, number, number][] = [
      ['bytes=0-0', 0, 0], ['bytes=2-5', 2, 5], ['bytes=5-', 5, length - 1], ['bytes=-3', length - 3, length - 1], [`bytes=-${length}`, 0, length - 1], [`bytes=-${length + 5}`, 0, length - 1],
      [`bytes=0-${length - 1}`, 0, length - 1], [`bytes=1-${length + 100}`, 1, length - 1], [`bytes=${length - 1}-`, length - 1, length - 1], ['BYTES=1-2', 1, 2], ['bytes= 1-2 ', 1, 2],
    ];
    for (const [range, start, end] of cases) {
      const answer = await get(file, range);
      expect({ range, status: answer.status, place: answer.headers.get('content-range'), length: answer.headers.get('content-length') })
        .toEqual({ range, status: 206, place: `bytes ${start}-${end}/${length}`, length: String(end - start + 1) });
      expect(answer.bytes.equals(file.bytes.subarray(start, end + 1))).toBe(true);
    }
  });

  test('a range past the end is not satisfiable, and the answer says the size', async () => {
    const file = stored[name]!;
    const { length } = file.bytes;
    for (const range of [`bytes=${length}-`, `bytes=${length}-${length + 5}`, 'bytes=-0', 'bytes=999999999999999-']) {
      const answer = await get(file, range);
      expectRefusal(answer, 416, 'range_not_satisfiable');
      expect(answer.headers.get('content-range')).toBe(`bytes */${length}`);
      for (const header of ['etag', 'content-disposition', 'accept-ranges']) expect(answer.headers.has(header)).toBe(false);
    }
  });

  test('what is malformed, inverted or many ranges is answered with the whole file', async () => {
    const file = stored[name]!;
    const manyRanges = `bytes=${Array.from({ length: 10_000 }, () => '0-0').join(',')}`;
    for (const range of ['bytes=5-2', 'bytes=a-b', 'bytes=', 'bytes=-', 'bytes', 'lines=0-1', 'bytes=0-1,4-5', 'bytes=0-5,3-8', 'bytes=1-2-3', 'bytes 0-1', 'bytes=0x1-0x2', 'bytes=+1-2', 'bytes=1.5-2', manyRanges]) {
      const answer = await get(file, range);
      expect({ range: range.slice(0, 20), status: answer.status, place: answer.headers.get('content-range') }).toEqual({ range: range.slice(0, 20), status: 200, place: null });
      expect(answer.bytes.equals(file.bytes)).toBe(true);
    }
  });

  test('If-Range gives the range of the same version, else the whole file', async () => {
    const file = stored[name]!;
    const { headers } = await headOf(exchange, `/api/dl/${file.id}`);
    const [etag, modified] = [headers.get('etag')!, headers.get('last-modified')!];
    for (const same of [etag, modified]) expect((await get(file, 'bytes=1-2', { 'If-Range': same })).status).toBe(206);
    const others = ['"another"', `W/${etag}`, etag.slice(1, -1), new Date(Date.parse(modified) - 60_000).toUTCString(), new Date(Date.parse(modified) + 60_000).toUTCString(), 'garbage'];
    for (const other of others) {
      const answer = await get(file, 'bytes=1-2', { 'If-Range': other });
      expect({ other, status: answer.status, length: answer.bytes.length }).toEqual({ other, status: 200, length: file.bytes.length });
    }
    expect((await get(file, `bytes=${file.bytes.length}-`, { 'If-Range': '"another"' })).status).toBe(200);
  });

  test('a download that was interrupted is resumed where it ended', async () => {
    const file = stored[name]!;
    const step = Math.ceil(file.bytes.length / 7);
    const pieces: Buffer[] = [];
    for (let start = 0; start < file.bytes.length; start += step) pieces.push((await get(file, `bytes=${start}-${start + step - 1}`)).bytes);
    expect(Buffer.concat(pieces).equals(file.bytes)).toBe(true);
  });
});

describe('GET /api/dl/{id} with Range across parts', () => {
  test('every cut at and around the borders of parts is exact', async () => {
    const file = stored['a file of scattered parts']!;
    const { length } = file.bytes;
    const cuts = [0, smallestPart - 1, smallestPart, smallestPart + 1, 2 * smallestPart - 1, 2 * smallestPart, 2 * smallestPart + 1, length - 1];
    for (const start of cuts) {
      for (const end of cuts.filter((cut) => cut >= start)) {
        const { status, bytes } = await get(file, `bytes=${start}-${end}`);
        expect({ start, end, status, equal: bytes.equals(file.bytes.subarray(start, end + 1)) }).toEqual({ start, end, status: 206, equal: true });
      }
    }
  });
});
