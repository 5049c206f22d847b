/** Prepares what cases share: the random bytes, an agent, shares of each kind. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Stack } from '../deploy/local/stack.ts';
import { exchangeAt, type Agent, type Exchange, type Uploaded } from './cases/exchange.ts';
import { small, type Extent, type ShareKind, type Stand } from './cases/case.ts';
import { drive } from './drive.ts';
import type { Floors } from './floors/start.ts';
import type { Job } from './load/job.ts';

const blockBytes = 64 * 1_024 ** 2;
/** Enough that connections seldom meet on a row. */
const sharesOfAKind = 256;
const uploadsAtOnce = 16;
const uncountablyMany = 1_000_000_000;

/** Random bytes, made once: the bodies of all uploads, and the files that the floors' file server sends. */
export interface Bytes {
  readonly blockFile: string;
  readonly block: Buffer<ArrayBuffer>;
  /** The folder that holds them. */
  readonly folder: string;
}

export async function makeBytes(folder: string, largeBytes: number): Promise<Bytes> {
  await mkdir(folder);
  const block = Buffer.from(randomBytes(blockBytes));
  const blockFile = join(folder, 'block');
  await writeFile(blockFile, block);
  await writeFile(join(folder, 'small'), block.subarray(0, small));
  const large = await open(join(folder, 'large'), 'w');
  for (let at = 0; at < largeBytes; at += blockBytes) await large.write(block.subarray(0, Math.min(blockBytes, largeBytes - at)));
  await large.sync();
  await large.close();
  return { blockFile, block, folder };
}

export async function makeStand(parts: { stack: Stack; floors: Floors; bytes: Bytes; extent: Extent; signal: AbortSignal }): Promise<Stand> {
  const { stack, floors, bytes, extent, signal } = parts;
  const exchange = exchangeAt(stack.baseUrl);
  const agent = await exchange.makeAgent(stack.owner);
  return {
    ...extent, exchange, agent, floors,
    port: Number(new URL(stack.baseUrl).port),
    blockFile: bytes.blockFile,
    shares: remember((kind) => makeShares({ exchange, agent, body: bytes.block.subarray(0, small) }, kind)),
    largeHash: async () => hashOf(bytes.block, extent.largeBytes),
    load: (job) => loadWithoutErrors(job, signal),
  };
}

function remember<V>(make: (kind: ShareKind) => Promise<V>): (kind: ShareKind) => Promise<V> {
  const made = new Map<ShareKind, Promise<V>>();
  return (kind) => {
    const known = made.get(kind) ?? make(kind);
    made.set(kind, known);
    return known;
  };
}

interface Sender {
  readonly exchange: Exchange;
  readonly agent: Agent;
  readonly body: Buffer<ArrayBuffer>;
}

async function makeShares({ exchange, agent, body }: Sender, kind: ShareKind): Promise<Uploaded[]> {
  const forAgents = { authMode: 'agent', allowedAgentIds: [agent.agentId] };
  const policy = { open: {}, capped: { maxUses: uncountablyMany }, hot: { maxUses: uncountablyMany }, agent: forAgents, 'agent hot': forAgents }[kind];
  const fields = { filename: 'small.bin', mimeType: 'application/octet-stream', lane: 'single', ...policy };
  let left = kind.endsWith('hot') ? 1 : sharesOfAKind;
  const made: Uploaded[] = [];
  const work = async () => {
    while (left-- > 0) made.push(await exchange.upload(body, fields, agent.key));
  };
  await Promise.all(Array.from({ length: uploadsAtOnce }, work));
  return made;
}

function hashOf(block: Buffer, size: number): string {
  const hash = createHash('sha256');
  for (let at = 0; at < size; at += block.length) hash.update(block.subarray(0, Math.min(block.length, size - at)));
  return hash.digest('hex');
}

async function loadWithoutErrors(job: Job, signal: AbortSignal) {
  const { load } = await drive(job, [], signal);
  const [error] = Object.entries(load.errors);
  if (error) throw new Error(`preparing: ${error[0]} (${error[1]} times)`);
  return load;
}
