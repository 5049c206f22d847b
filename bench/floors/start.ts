/** Starts the floors' processes against the stack's own NATS server and database, and ends them. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Stack } from '../../deploy/local/stack.ts';
import type { Watched } from '../measure.ts';
import type { FloorSettings } from './process.ts';
import { dropRows, makeRows } from './rows.ts';

const names = ['hello', 'hop', 'echo', 'files'] as const;
type FloorName = (typeof names)[number];

export interface Floors {
  readonly ports: Readonly<Record<FloorName, number>>;
  readonly processes: readonly Watched[];
  /** Where the file server's files are. */
  readonly folder: string;
  stop(): Promise<void>;
}

export async function startFloors(stack: Stack, folder: string): Promise<Floors> {
  const { natsUrl, databaseUrl } = stack;
  const schema = `bench_floor_${process.pid}`;
  await makeRows(databaseUrl, schema);
  const settings: FloorSettings = { natsUrl, databaseUrl, schema, subject: `bench.floor.${process.pid}`, folder };
  const children = names.map((name) => fork(new URL(`./${name}.ts`, import.meta.url)));
  const stop = async () => {
    await Promise.all(children.map(end));
    await dropRows(databaseUrl, schema);
  };
  try {
    const ports = await Promise.all(children.map((child) => begin(child, settings)));
    return {
      ports: Object.fromEntries(names.map((name, index) => [name, ports[index]!])) as Record<FloorName, number>,
      processes: names.map((name, index) => ({ name: `floor ${name}`, pid: children[index]!.pid! })),
      folder, stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function begin(child: ChildProcess, settings: FloorSettings): Promise<number> {
  child.send(settings);
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('a floor could not start')));
  // Its end is expected later, when nobody listens any more.
  ended.catch(() => undefined);
  const [port] = (await Promise.race([once(child, 'message'), ended])) as [number];
  return port;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
