/** Large archives and archives that break: as many entries as the format's limits are about, more than 4 GiB, a file that is missing, memory that stays flat. */
import { createWriteStream } from 'node:fs';
import { mkdtemp, open, readdir, readFile, rm, unlink } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readers } from '../support/archive-readers.ts';
import { exchangeAt, type Exchange } from '../support/exchange.ts';
import { eventually, figure, isFull, sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { folderLane, type Declared, type Folder } from '../support/folder-lane.ts';
import { readZip } from '../support/read-zip.ts';

const MiB = 1_024 ** 2;
/** What the gateway may take more for an archive, whatever is in it. */
const bound = 192 * MiB;

let stack: FaultStack;
let end: () => Promise<void>;
let exchange: Exchange;
let lane: ReturnType<typeof folderLane>;
let session: string;
let scratch: string;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack());
  exchange = exchangeAt(stack.baseUrl, stack.owner);
  lane = folderLane(exchange);
  session = await exchange.signIn();
  scratch = await mkdtemp(join(tmpdir(), 'aex-archives-'));
});
afterAll(async () => {
  await end();
  await rm(scratch, { recursive: true, force: true });
});

/** As many more files as it takes to have `count`, each with the bytes of the first. One statement each makes what a hundred thousand requests would. */
async function multiply(folder: Folder, { fileId }: Declared, count: number): Promise<void> {
  const copy = `substr(md5('${folder.id}' || n), 1, 24)`;
  await stack.query(`
    insert into storage.folder_files (folder_id, place, id, upload_id, path, archive_name, name_key, size, mime_type, crc32, ready_at)
    select folder_id, n, 'fil_' || ${copy}, 'mpu_' || ${copy}, name, name, name, size, mime_type, crc32, ready_at
    from storage.folder_files, generate_series(2, ${count}) n, lateral (select 'folder ' || n % 100 || '/file ' || n || '.txt' as name) named where id = '${fileId}'`);
  await stack.query(`
    insert into storage.transfers (id, share_id, plan_id, folder_id, owner_id, kind, lane, filename, mime_type, size, crc32, release, segments, expires_at)
    select 'fil_' || ${copy}, share_id, 'fil_' || ${copy}, folder_id, owner_id, kind, lane, filename, mime_type, size, crc32, release, segments, expires_at
    from storage.transfers, generate_series(2, ${count}) n where id = '${fileId}'`);
}

async function folderOf(count: number): Promise<Folder> {
  const folder = await lane.create({}, session);
  await multiply(folder, await lane.add(folder, 'first.txt', 'the same in each\n'), count);
  return folder;
}

function fetchZip(address: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => get(address, resolve).on('error', reject));
}

/** Writes an archive to disk. Answers its path. */
async function save(folder: Folder): Promise<string> {
  const path = join(scratch, `${folder.id}.zip`);
  await pipeline(await fetchZip(folder.zipUrl), createWriteStream(path));
  return path;
}

async function residentBytes(): Promise<number> {
  const [, pages] = (await readFile(`/proc/${stack.services['gateway']!.pid}/statm`, 'utf8')).split(' ');
  return Number(pages) * 4_096;
}

/** The most memory that the gateway had, above what it had before, while `work` went on. */
async function memoryOf(work: () => Promise<unknown>): Promise<number> {
  const before = await residentBytes();
  let most = 0;
  const timer = setInterval(() => void residentBytes().then((bytes) => { most = Math.max(most, bytes - before); }), 50);
  await work().finally(() => clearInterval(timer));
  return most;
}

describe('entries', () => {
  test.each(isFull ? [199, 200, 10_000, 65_535, 65_536] : [199, 200])('of %i each reader finds every one', async (count) => {
    const folder = await folderOf(count);
    let archive = '';
    const memory = await memoryOf(async () => { archive = await save(folder); });
    const names = readZip(await readFile(archive)).map(({ name }) => name).sort();
    expect(new Set(names).size).toBe(count);
    for (const { name, isInstalled, list } of readers) {
      if (!isInstalled) process.stdout.write(`${name} is not installed\n`);
      else expect((await list(archive)).sort(), name).toEqual(names);
    }
    process.stdout.write(`${count} entries: ${Math.round(memory / MiB)} MiB\n`);
    expect(memory).toBeLessThan(bound);
  });

  test('of many with the longest names are sent to a slow reader in little memory', async () => {
    const folder = await folderOf(figure(5_000, 65_536));
    await stack.query(`update storage.folder_files set archive_name = rpad(archive_name, 1000, 'x') where folder_id = '${folder.id}' and place > 1`);
    const memory = await memoryOf(async () => {
      const response = await fetchZip(folder.zipUrl);
      await sleep(2_000);
      let size = 0;
      for await (const chunk of response) size += (chunk as Buffer).length;
      expect(size).toBe(Number(response.headers['content-length']));
    });
    expect(memory).toBeLessThan(bound);
  });
});

describe('more than 4 GiB', () => {
  /** A part of this many zero bytes, sent from one buffer. */
  const zeros = new Uint8Array(64 * MiB);

  test.skipIf(!isFull)('in one file, and a file behind it, each reader opens', async () => {
    const folder = await lane.create({}, session);
    const size = 4 * 1_024 * MiB + 5;
    const large = await lane.mustDeclare(folder, 'large.bin', size);
    for (let number = 1; number <= large.partCount; number += 1) {
      const answer = await lane.part(folder, large.uploadId, number, zeros.subarray(0, Math.min(large.partSize, size - large.partSize * (number - 1))));
      expect(answer.status).toBe(200);
    }
    await lane.complete(folder, large, 'large');
    expect(await lane.untilDone(folder, 'large')).toMatchObject({ state: 'ready' });
    await lane.add(folder, 'behind.txt', 'behind');
    let archive = '';
    const memory = await memoryOf(async () => { archive = await save(folder); });
    for (const { name, isInstalled, list } of readers) if (isInstalled) expect((await list(archive)).sort(), name).toEqual(['behind.txt', 'large.bin']);
    expect(memory).toBeLessThan(bound);
  });

  test.skipIf(!isFull)('of entries that are large only together, the last is where the directory says', async () => {
    const folder = await lane.create({}, session);
    // A file with a hole: its bytes are zeros that take no room.
    const first = await lane.add(folder, 'first.bin', Buffer.alloc(70_000));
    const size = 1_500 * MiB;
    const [{ key }] = await stack.query<{ key: string }>(`select segments->0->>'key' as key from storage.transfers where id = '${first.fileId}'`) as [{ key: string }];
    const file = await open(join(stack.dataDir, 'blobs', key.slice(0, 2), key), 'r+');
    await file.truncate(size);
    await file.close();
    const { crc32 } = await import('node:zlib');
    const whole = Array.from({ length: size / MiB }).reduce<number>((crc) => crc32(zeros.subarray(0, MiB), crc), 0);
    await stack.query(`update storage.folder_files set size = ${size}, crc32 = ${whole} where id = '${first.fileId}'`);
    await stack.query(`update storage.transfers set size = ${size}, segments = '[{"key": "${key}", "offset": 0, "size": ${size}}]' where id = '${first.fileId}'`);
    await multiply(folder, first, 3);
    const response = await fetchZip(folder.zipUrl);
    let tail = Buffer.alloc(0);
    let sent = 0;
    for await (const chunk of response) {
      sent += (chunk as Buffer).length;
      tail = Buffer.concat([tail, chunk as Buffer]).subarray(-4_096);
    }
    expect(sent).toBe(Number(response.headers['content-length']));
    const directory = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x06, 0x06]));
    expect([Number(tail.readBigUInt64LE(directory + 32)), Number(tail.readBigUInt64LE(directory + 48))]).toEqual([3, sent - 98 - Number(tail.readBigUInt64LE(directory + 40))]);
  });
});

describe('a file whose bytes are missing', () => {
  /** Takes the bytes of a file away, as a broken disk would. */
  async function lose({ fileId }: Declared): Promise<void> {
    const [{ key }] = await stack.query<{ key: string }>(`select segments->0->>'key' as key from storage.transfers where id = '${fileId}'`) as [{ key: string }];
    await unlink(join(stack.dataDir, 'blobs', key.slice(0, 2), key));
  }

  test('at the beginning of an archive gives the use back', async () => {
    const folder = await lane.create({ maxUses: 1 }, session);
    await lose(await lane.add(folder, 'lost', 'lost'));
    const { status } = await exchange.call(folder.zipUrl);
    expect(status).toBe(500);
    await exchange.must(`/api/dl/${(await lane.add(folder, 'kept', 'kept')).fileId}?share_id=${folder.shareId}`);
  });

  test('further on breaks the connection, and the record says so', async () => {
    const folder = await lane.create({}, session);
    // Larger than what is read before it is sent.
    await lane.add(folder, 'kept', Buffer.alloc(MiB));
    await lose(await lane.add(folder, 'lost', 'lost'));
    await expect(exchange.call(folder.zipUrl)).rejects.toThrow();
    expect(await exchange.events(session, { eventType: 'folder.zipped', targetId: folder.id })).toMatchObject([{ outcome: 'error', data: { entries: 1 } }]);
  });
});

test('an ended folder leaves no bytes and no rows behind', async () => {
  const folder = await lane.fill({ a: 'a', b: 'b' }, {}, session);
  await lane.send(folder, 'c', 'c');
  const keys = (await stack.query<{ key: string }>(`select blobs.key from storage.blobs join storage.folder_files on folder_files.upload_id = blobs.upload_id where folder_id = '${folder.id}'`)).map(({ key }) => key);
  expect(keys.length).toBeGreaterThanOrEqual(3);
  await exchange.must(`/api/dl/${folder.id}`, { method: 'DELETE', bearer: session });
  const left = await eventually(async () => {
    const files = await readdir(join(stack.dataDir, 'blobs'), { recursive: true });
    const [rows] = await stack.query<{ count: number }>(`select ((select count(*) from storage.folder_files where folder_id = '${folder.id}' and gone_at is null)
      + (select count(*) from storage.transfers where folder_id = '${folder.id}' and ended_at is null) + (select count(*) from storage.folders where id = '${folder.id}'))::int as count`);
    return { files: files.filter((name) => keys.some((key) => name.endsWith(key))), rows: rows!.count };
  }, ({ files, rows }) => files.length + rows === 0, 30_000);
  expect(left).toEqual({ files: [], rows: 0 });
});
