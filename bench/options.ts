/** The command line of `npm run bench`. */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Extent } from './cases/case.ts';

export interface Options {
  readonly mode: 'quick' | 'full';
  /** Part of the names of the cases to run; the floors that they are held against run too. */
  readonly only: string;
  readonly extent: Extent;
  /** How long the servers may work on in the background after a measurement, in seconds. */
  readonly settleSeconds: number;
  /** Folder for a CPU profile of each service, when one is wanted. */
  readonly profileFolder?: string;
}

export const usage = `npm run bench -- [--quick] [--only <part of a name>] [--connections <number>] [--profile <folder>]

  --quick         3 s a measurement and 256 MiB in place of 1 GiB: under two minutes
  --only          only the cases whose name contains this, and their floors
  --connections   how many requests are under way at once; 64 when not given
  --profile       write a CPU profile of each service into this folder; figures are lower then`;

const MiB = 1_024 ** 2;
const full: Extent = { connections: 64, seconds: 7, warmupSeconds: 2, largeBytes: 1_024 * MiB, largeWarmupBytes: 64 * MiB };
const quick: Extent = { connections: 64, seconds: 3, warmupSeconds: 0.7, largeBytes: 256 * MiB, largeWarmupBytes: 32 * MiB };

/** Answers undefined when help was asked for. @throws a sentence about an option that is wrong. */
export function readOptions(args: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: { quick: { type: 'boolean' }, only: { type: 'string' }, connections: { type: 'string' }, profile: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return undefined;
  const extent = values.quick ? quick : full;
  const connections = Number(values.connections ?? extent.connections);
  if (!Number.isInteger(connections) || connections < 1 || connections > 1_000) throw new Error('--connections must be a whole number from 1 to 1000');
  return {
    mode: values.quick ? 'quick' : 'full',
    only: values.only ?? '',
    extent: { ...extent, connections },
    settleSeconds: values.quick ? 4 : 30,
    ...(values.profile && { profileFolder: resolve(values.profile) }),
  };
}
