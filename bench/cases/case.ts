/** What a case is: a row of the table. It prepares a job; the runner measures it. */
import type { Floors } from '../floors/start.ts';
import type { Job, LoadResult } from '../load/job.ts';
import type { Agent, Exchange, Uploaded } from './exchange.ts';

/** How much is measured. */
export interface Extent {
  readonly connections: number;
  readonly seconds: number;
  readonly warmupSeconds: number;
  /** Bytes of a large transfer, and of the smaller one that warms its way up. */
  readonly largeBytes: number;
  readonly largeWarmupBytes: number;
}

/** Shares of 4 KiB transfers of one kind. */
export type ShareKind = 'open' | 'capped' | 'hot' | 'agent' | 'agent hot';

/** What cases may use. */
export interface Stand extends Extent {
  /** The gateway's port. */
  readonly port: number;
  readonly exchange: Exchange;
  readonly agent: Agent;
  readonly floors: Floors;
  /** The file whose bytes all bodies are made of. */
  readonly blockFile: string;
  /** Made when first asked for. */
  shares(kind: ShareKind): Promise<readonly Uploaded[]>;
  /** SHA-256 of a large body, in hexadecimal. */
  largeHash(): Promise<string>;
  /** Runs a job that is not measured. Fails when one of its operations did. */
  load(job: Job): Promise<LoadResult>;
}

export interface Case {
  readonly name: string;
  readonly unit: 'req/s' | 'MB/s';
  readonly side: 'floor' | 'product';
  /** The floors whose shape it has; the ratio to each is shown. */
  readonly floors: readonly string[];
  prepare(stand: Stand): Promise<Job>;
  /** Checks and cleans up; what it throws is shown as an error of the row. */
  finish?(stand: Stand, result: LoadResult): Promise<void>;
}

export const small = 4_096;

/** A job of many small requests: the extent's connections and seconds. */
export function smallJob(stand: Stand, job: Pick<Job, 'flow' | 'collect'> & { port?: number }): Job {
  const { port, connections: lanes, seconds, warmupSeconds, blockFile } = stand;
  return { port, lanes, seconds, warmupSeconds, blockFile, ...job };
}

export function bearer({ key }: Agent): Record<string, string> {
  return { Authorization: `Bearer ${key}` };
}

/** `1 GiB`, `256 MiB`. */
export function sizeName(bytes: number): string {
  return bytes >= 1_024 ** 3 ? `${bytes / 1_024 ** 3} GiB` : `${bytes / 1_024 ** 2} MiB`;
}
