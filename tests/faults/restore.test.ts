/** Everything is lost and restored from a backup that was taken while the exchange served (docs/operating.md): the database first, then the bytes. */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backUpBytes, backUpDatabase, wipeAndRestore } from '../support/backup.ts';
import { exchangeAt, type Exchange, type Uploaded } from '../support/exchange.ts';
import { eventually, startFaultStack, type FaultStack, type FaultStart } from '../support/fault-stack.ts';
import { multipartLane } from '../support/multipart-lane.ts';
import { expectRefusal } from '../support/refusals.ts';
import { allowPublic, startSourceServer, type SourceServer } from '../support/source-server.ts';
import { tusLane } from '../support/tus-lane.ts';
import { waysIn, type WayIn } from '../support/ways-in.ts';

/** The bytes are copied as files. */
const settings = { storage: { BLOB_DRIVER: 'fs' }, gateway: { LEGACY_SURFACES: 'upload,tus' }, importer: allowPublic };
/** Text, above what is stored in a row, so that a blob is behind it. */
const content = Buffer.from(randomBytes(30_000).toString('base64'));
const [first, second] = [randomBytes(65_536), randomBytes(1_000)] as const;

let fault: FaultStart;
let restored: FaultStack;
let folder: string;
let source: SourceServer;
let exchange: Exchange;
let before: Awaited<ReturnType<typeof useEverything>>;
let late: Uploaded;
let recorded: unknown[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aex-backup-'));
  source = await startSourceServer({ way: (_request, response) => response.setHeader('content-type', 'text/plain').end(content) });
  fault = await startFaultStack(settings);
  exchange = exchangeAt(fault.stack.baseUrl, fault.stack.owner);
  before = await useEverything();
  recorded = await eventIds(fault.stack);
  // Nobody confirms what comes now: it is in the outboxes when the backup is taken.
  await fault.stack.services['audit']!.stop();
  before.unconfirmed.push(await exchange.upload(content), await exchange.upload('small'));
  await backUpDatabase(fault.stack, folder);
  late = await exchange.upload(content);
  await backUpBytes(fault.stack, folder);
  restored = await fault.restart(settings, (dataDir) => wipeAndRestore(dataDir, folder));
});
afterAll(async () => {
  source.close();
  await fault.end();
  await rm(folder, { recursive: true, force: true });
});

const ways = (): WayIn[] => waysIn(exchange, { serve: () => source.url('/way'), legacy: () => exchange });

/** Shares of every kind, some spent, some deleted, and uploads that are half-done. */
async function useEverything() {
  const { must, upload, makeAgent, grant } = exchange;
  const session = await exchange.signIn();
  const agent = await makeAgent(session);
  const shares = new Map<string, Uploaded>();
  for (const { name, create } of ways()) shares.set(name, await create(content, { bearer: session, policy: { ttl: 3_600 } }));
  const capped = await upload(content, { maxUses: 2 });
  await must(capped.downloadUrl);
  const granted = await upload(content, { allowedAgentIds: [agent.agentId] }, session);
  const [spent, unspent] = [await grant(granted.shareId, agent.key), await grant(granted.shareId, agent.key)];
  await must(`/api/dl/${granted.id}`, { headers: { 'X-Access-Grant': spent } });
  const deleted = await upload(content);
  await must(`/api/dl/${deleted.id}`, { method: 'DELETE', headers: { 'X-Delete-Token': deleted.deleteToken } });
  const again = { bearer: session, headers: { 'Idempotency-Key': randomUUID() }, json: { agentId: `agent-${randomUUID()}` } };
  const answer = (await must('/api/agent/keys', again)).json as unknown;
  const half = await multipartLane(exchange).begin(66_536, { partSize: 65_536 }, { bearer: session });
  await multipartLane(exchange).part(half.uploadId, 1, first, { bearer: session });
  const resumable = new URL(await tusLane(exchange).begin(66_536)).pathname;
  await tusLane(exchange).patch(resumable, 0, first);
  await eventually(() => outboxCount(fault.stack), (count) => count === 0, 20_000);
  return { session, shares, capped, granted, spent, unspent, deleted, again, answer, half, resumable, unconfirmed: [] as Uploaded[] };
}

const outboxCount = async ({ query }: FaultStack): Promise<number> =>
  (await query<{ count: number }>('select ((select count(*) from policy.outbox) + (select count(*) from storage.outbox) + (select count(*) from importer.outbox))::int as count'))[0]!.count;
const eventIds = async ({ query }: FaultStack): Promise<unknown[]> => (await query<{ id: string }>('select id from audit.events order by id')).map(({ id }) => id);

describe('after everything was lost and restored', () => {
  test('a share made by every way in reads byte for byte', async () => {
    expect(before.shares.size).toBe(ways().length);
    for (const { name, contentOf } of ways()) {
      const { status, bytes } = await exchange.call(before.shares.get(name)!.downloadUrl);
      expect([name, status]).toEqual([name, 200]);
      expect((contentOf?.(bytes) ?? bytes).equals(content), name).toBe(true);
    }
  });

  test('a use that was spent is spent, and the one that was left is left', async () => {
    expect((await exchange.call(before.capped.downloadUrl)).headers.get('x-remaining-uses')).toBe('0');
    expectRefusal(await exchange.call(before.capped.downloadUrl), 410, 'share_use_limit_exceeded');
  });

  test('a grant that was used answers grant_already_used, and one that was not works', async () => {
    const fetchBy = (grant: string) => exchange.call(`/api/dl/${before.granted.id}`, { headers: { 'X-Access-Grant': grant } });
    expectRefusal(await fetchBy(before.spent), 409, 'grant_already_used');
    expect((await fetchBy(before.unspent)).bytes.equals(content)).toBe(true);
  });

  test('what was deleted stays deleted', async () => {
    expectRefusal(await exchange.call(before.deleted.downloadUrl), 404, 'share_not_found_or_expired');
  });

  test('a repeated request is told its first answer', async () => {
    expect((await exchange.must('/api/agent/keys', before.again)).json).toEqual(before.answer);
  });

  test('a multipart upload goes on with the part that it has', async () => {
    const lane = multipartLane(exchange);
    const speaker = { bearer: before.session };
    await lane.part(before.half.uploadId, 2, second, speaker);
    const { downloadUrl } = (await lane.complete(before.half.uploadId, {}, speaker)).json as Uploaded;
    expect((await exchange.call(downloadUrl)).bytes.equals(Buffer.concat([first, second]))).toBe(true);
  });

  test('a TUS upload goes on from its offset', async () => {
    const lane = tusLane(exchange);
    expect((await lane.head(before.resumable)).offset).toBe(first.length);
    const downloadUrl = (await lane.patch(before.resumable, first.length, second)).headers.get('x-download-url')!;
    expect((await exchange.call(downloadUrl)).bytes.equals(Buffer.concat([first, second]))).toBe(true);
  });

  test('the record has all that it had, and once each what nobody had confirmed', async () => {
    expect(await eventually(() => outboxCount(restored), (count) => count === 0, 60_000)).toBe(0);
    const ids = await eventIds(restored);
    expect(ids).toEqual(expect.arrayContaining(recorded));
    expect(new Set(ids).size).toBe(ids.length);
    for (const { id, shareId } of before.unconfirmed) {
      const stored = await restored.query<{ type: string }>(`select event->>'eventType' as type from audit.events where event->>'targetId' in ('${id}', '${shareId}')`);
      expect(stored.map(({ type }) => type).sort()).toEqual(expect.arrayContaining(['share.created', 'transfer.stored']));
      expect(stored.filter(({ type }) => type === 'transfer.stored')).toHaveLength(1);
    }
  });

  test('what came after the database was copied is not there, and all that it left is bytes that no row names', async () => {
    expectRefusal(await exchange.call(late.downloadUrl), 404, 'share_not_found_or_expired');
    const files = (await readdir(join(restored.dataDir, 'blobs'), { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).map(({ name }) => name);
    const known = (await restored.query<{ key: string }>('select key from storage.blobs')).map(({ key }) => key);
    expect(files.filter((name) => !known.includes(name))).toHaveLength(1);
  });

  test('everything goes on: a new share is made, read and recorded', async () => {
    const made = await exchange.upload(content, {}, before.session);
    expect((await exchange.call(made.downloadUrl)).bytes.equals(content)).toBe(true);
    expect(await exchange.events(before.session, { eventType: 'share.created', shareId: made.shareId })).toHaveLength(1);
    expect(restored.crashes).toEqual([]);
  });
});
