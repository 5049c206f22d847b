/** The floors: what the parts that the product is made of do at best on this machine, in the same minutes. */
import type { Wire } from '../load/job.ts';
import { small, smallJob, type Case, type Stand } from './case.ts';

const base = { unit: 'req/s', side: 'floor', floors: [] } as const;

export const floorName = {
  hello: 'floor: Fastify hello',
  echo: 'floor: Fastify > NATS > echo',
  select: 'floor: … > SELECT by key',
  update: 'floor: … > UPDATE by key',
  hot: 'floor: … > UPDATE of one row',
  smallOut: 'floor: file server, 4 KiB out',
  smallIn: 'floor: file sink, 4 KiB in',
} as const;

const get = (name: string, floor: 'hello' | 'hop', path: string): Case => ({
  ...base, name,
  prepare: async (stand) => smallJob(stand, { port: stand.floors.ports[floor], flow: { kind: 'requests', requests: [{ method: 'GET', path }], status: 200 } }),
});

const smallFile = (name: string, wire: Wire, expected: { status: number; size: number }): Case => ({
  ...base, name,
  prepare: async (stand) => smallJob(stand, { port: stand.floors.ports.files, flow: { kind: 'requests', requests: [wire], ...expected } }),
});

/** The name of a large file's floor. */
export function largeFloor(way: 'in' | 'out', size: string, lanes: number): string {
  return `floor: file ${way === 'in' ? 'sink' : 'server'}, ${size} ${way}${lanes > 1 ? `, ${lanes} at once` : ''}`;
}

function largeFile(way: 'in' | 'out', size: string, lanes: number): Case {
  const path = '/large';
  const flowOf = (bytes: number) => way === 'in'
    ? ({ kind: 'requests', requests: [{ method: 'PUT', path, bytes }], status: 201 } as const)
    : ({ kind: 'requests', requests: [{ method: 'GET', path }], status: 200, size: bytes } as const);
  return {
    ...base, unit: 'MB/s', name: largeFloor(way, size, lanes),
    prepare: async ({ floors, blockFile, seconds, largeBytes, largeWarmupBytes }: Stand) => ({
      port: floors.ports.files, lanes, seconds, warmupSeconds: 0, blockFile,
      flow: flowOf(largeBytes),
      ...(way === 'in' && { warmup: flowOf(largeWarmupBytes) }),
    }),
  };
}

/** @param size how a large transfer is called, such as `1 GiB` */
export function floorCases(size: string): Case[] {
  return [
    get(floorName.hello, 'hello', '/hello'),
    get(floorName.echo, 'hop', '/echo'),
    get(floorName.select, 'hop', '/select'),
    get(floorName.update, 'hop', '/update'),
    get(floorName.hot, 'hop', '/hot'),
    smallFile(floorName.smallOut, { method: 'GET', path: '/small' }, { status: 200, size: small }),
    smallFile(floorName.smallIn, { method: 'PUT', path: '/small', bytes: small }, { status: 201, size: 0 }),
    ...(['in', 'out'] as const).flatMap((way) => [1, 4].map((lanes) => largeFile(way, size, lanes))),
  ];
}
