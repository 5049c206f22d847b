/** A whole stack for one file of fault tests: in a folder of its own, with sweeps that come soon. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { startStack, type Stack } from '../../deploy/local/stack.ts';
import { blobSettings } from './object-store.ts';

/** The full figures take an hour; the smaller ones are for every run. */
export const isFull = process.env['AEX_FAULTS'] === 'full';

export function figure(usual: number, full: number): number {
  return isFull ? full : usual;
}

export interface FaultStack extends Stack {
  /** What the supervisor reported: crashes that nobody asked for. */
  readonly crashes: string[];
  /** One look at the database, as its administrator; no service's connection is used. */
  query<T extends object>(statement: string): Promise<T[]>;
}

type Environments = Record<string, Record<string, string>>;

/** Sweeps come every second, and what nobody finished is given up soon. Requests are not limited: one machine sends them all. Parts may be small, so that a multipart upload is cheap. */
const soon: Environments = {
  gateway: { RATE_LIMITS: 'off' },
  policy: { SWEEP_SECONDS: '1', GRANT_TTL_SECONDS: '300', PART_SIZE_MIN_BYTES: '65536' },
  storage: { SWEEP_SECONDS: '1', SETTLE_AFTER_SECONDS: '3', BLOB_IDLE_SECONDS: '15', TICKET_GRACE_SECONDS: '10' },
};

/** A stack that is stopped and started again at the same address. */
export interface FaultStart {
  readonly stack: FaultStack;
  /** Stops it, has something done to its folder, and starts it with other settings. Answers the new one. */
  restart(env: Environments, meanwhile?: (dataDir: string) => Promise<void>): Promise<FaultStack>;
  /** Stops it and removes its folder. */
  end(): Promise<void>;
}

/** Starts a stack in a folder of its own, on a free port. */
export async function startFaultStack(env: Environments = {}): Promise<FaultStart> {
  const dataDir = await mkdtemp(join(tmpdir(), 'aex-fault-'));
  const blobs = blobSettings();
  const crashes: string[] = [];
  const progress = (line: string) => { if (line.includes('ended by itself')) crashes.push(line); };
  const start = async (own: Environments, port: number): Promise<FaultStack> => {
    const merged = Object.fromEntries([...new Set([...Object.keys(soon), ...Object.keys(own)])].map((name) => [name, { ...soon[name], ...blobs[name], ...own[name] }]));
    const stack = await startStack({ dataDir, port, env: merged, progress });
    return Object.assign(stack, { crashes, query: queryOnce(stack.databaseUrl) });
  };
  const stack = await start(env, 0);
  let running = stack;
  return {
    stack,
    async restart(own, meanwhile) {
      await running.stop();
      await meanwhile?.(dataDir);
      running = await start(own, Number(new URL(stack.baseUrl).port));
      return running;
    },
    async end() {
      await running.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function queryOnce(url: string) {
  return async <T extends object>(statement: string): Promise<T[]> => {
    const sql = postgres(url, { max: 1, onnotice: () => undefined });
    try {
      return [...(await sql.unsafe<T[]>(statement))];
    } finally {
      await sql.end({ timeout: 1 });
    }
  };
}

/** Asks again and again until the answer is good; after `withinMs` answers the last one, for the test to judge. */
export async function eventually<T>(ask: () => Promise<T> | T, isGood: (answer: T) => boolean, withinMs: number): Promise<T> {
  for (const end = Date.now() + withinMs; ; await sleep(100)) {
    const answer = await ask();
    if (isGood(answer) || Date.now() > end) return answer;
  }
}

export { sleep };
