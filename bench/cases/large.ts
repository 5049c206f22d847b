/** Large transfers: up by the single lane and by multipart, and down; one and four at once. */
import type { Flow, Job, LoadResult } from '../load/job.ts';
import { bearer, type Case, type Stand } from './case.ts';
import type { Uploaded } from './exchange.ts';
import { largeFloor } from './floors.ts';

const partSize = 16 * 1_024 ** 2;
const partsAtOnce = 4;

type Lane = 'single' | 'multipart';

const base = { unit: 'MB/s', side: 'product' } as const;

function uploadFlow({ agent }: Stand, lane: Lane, size: number): Flow {
  const headers = bearer(agent);
  const fields = { filename: 'large.bin', mimeType: 'application/octet-stream', size };
  const asJson = { ...headers, 'Content-Type': 'application/json' };
  return lane === 'single'
    ? { kind: 'single', size, plan: { method: 'POST', path: '/api/transfer-plan', headers: asJson, text: JSON.stringify({ ...fields, lane }) } }
    : { kind: 'multipart', size, partSize, parallel: partsAtOnce, headers, init: { method: 'POST', path: '/api/upload/multipart/init', headers: asJson, text: JSON.stringify({ ...fields, partSize }) } };
}

function uploadJob(stand: Stand, lane: Lane, lanes: number): Job {
  const { port, seconds, blockFile, largeBytes, largeWarmupBytes } = stand;
  return {
    port, lanes, seconds, warmupSeconds: 0, blockFile,
    flow: uploadFlow(stand, lane, largeBytes),
    warmup: uploadFlow(stand, lane, largeWarmupBytes),
    collect: ['id', 'shareId', 'deleteToken'],
  };
}

async function checkHash({ exchange, largeHash }: Stand, uploaded: Uploaded): Promise<void> {
  const [hash, expected] = [await exchange.hash(uploaded), await largeHash()];
  if (hash !== expected) throw new Error(`SHA-256 of ${uploaded.id} is ${hash} in place of ${expected}`);
}

/** One of the uploads is fetched and hashed; all of them go. */
async function checkAndRemove(stand: Stand, { collected }: LoadResult): Promise<void> {
  const all = collected as unknown as Uploaded[];
  if (all[0]) await checkHash(stand, all[0]);
  for (const uploaded of all) await stand.exchange.remove(uploaded);
}

const sendLarge = (lane: Lane, size: string, lanes: number): Case => ({
  ...base, name: `up ${size}, ${lane === 'single' ? 'single lane' : 'multipart'}${lanes > 1 ? `, ${lanes} at once` : ''}`,
  floors: [largeFloor('in', size, lanes)],
  prepare: async (stand) => uploadJob(stand, lane, lanes),
  finish: checkAndRemove,
});

function fetchLarge(size: string, lanes: number): Case {
  let uploaded: Uploaded | undefined;
  return {
    ...base, name: `down ${size}${lanes > 1 ? `, ${lanes} at once` : ''}`,
    floors: [largeFloor('out', size, lanes)],
    prepare: async (stand) => {
      const { collected } = await stand.load({ ...uploadJob(stand, 'single', 1), seconds: 0 });
      uploaded = collected[0] as unknown as Uploaded;
      const { port, seconds, blockFile, largeBytes } = stand;
      const path = `/api/dl/${uploaded.id}?share_id=${uploaded.shareId}`;
      return { port, lanes, seconds, warmupSeconds: 0, blockFile, flow: { kind: 'requests', requests: [{ method: 'GET', path }], status: 200, size: largeBytes } };
    },
    finish: async (stand) => {
      await checkHash(stand, uploaded!);
      await stand.exchange.remove(uploaded!);
    },
  };
}

/** @param size how a large transfer is called, such as `1 GiB` */
export function largeCases(size: string): Case[] {
  return [1, 4].flatMap((lanes) => [sendLarge('single', size, lanes), sendLarge('multipart', size, lanes), fetchLarge(size, lanes)]);
}
