/** The load process: a closed loop. Every lane begins its next operation when its last one has ended; no lane waits for another. */
import { readFile } from 'node:fs/promises';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { openConnection } from './load/connection.ts';
import { makeFlow, type Done, type Operation } from './load/flows.ts';
import type { Flow, Job, LoadReport, LoadResult } from './load/job.ts';

/** A lane whose operation failed waits this long, so that a server that is down is not hammered. */
const afterErrorMs = 10;

interface Tally {
  readonly latenciesMs: number[];
  readonly errors: Record<string, number>;
  readonly collected: Record<string, string>[];
  bytes: number;
}

process.on('disconnect', () => process.exit(1));
const [job] = (await once(process, 'message')) as [Job];
const result = await run(job);
tell({ type: 'result', result }, () => process.exit(0));

function tell(report: LoadReport, sent: () => void = () => undefined): void {
  process.send?.(report, undefined, undefined, sent);
}

async function run(job: Job): Promise<LoadResult> {
  const block = await readFile(job.blockFile);
  const open = (flow: Flow) => {
    const lane = makeFlow(flow, () => openConnection({ port: job.port, block, readBytes: job.lanes > 8 ? 65_536 : 1_024 ** 2 }));
    return Array.from({ length: job.lanes }, lane);
  };
  const lanes = open(job.flow);
  const warmedUp = newTally();
  await loop(job.warmup ? open(job.warmup) : lanes, job.warmupSeconds, job, warmedUp);
  tell({ type: 'ready' });
  await once(process, 'message');
  return measure(lanes, job, warmedUp);
}

async function measure(lanes: readonly Operation[], job: Job, warmedUp: Tally): Promise<LoadResult> {
  const tally: Tally = { ...newTally(), errors: warmedUp.errors };
  const cpu = process.cpuUsage();
  const begun = performance.now();
  await loop(lanes, job.seconds, job, tally);
  const seconds = (performance.now() - begun) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const sorted = Float64Array.from(tally.latenciesMs).sort();
  return {
    count: sorted.length, bytes: tally.bytes, seconds,
    p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99),
    errors: tally.errors, collected: tally.collected,
    cpuSeconds: (user + system) / 1e6, peakBytes: process.resourceUsage().maxRSS * 1_024,
  };
}

function newTally(): Tally {
  return { latenciesMs: [], errors: {}, collected: [], bytes: 0 };
}

async function loop(lanes: readonly Operation[], seconds: number, job: Job, tally: Tally): Promise<void> {
  const end = performance.now() + seconds * 1_000;
  await Promise.all(lanes.map(async (operation) => {
    do {
      const begun = performance.now();
      try {
        const done = await operation();
        if (!done) return;
        tally.latenciesMs.push(performance.now() - begun);
        record(done, job, tally);
      } catch (error) {
        const { message } = error as Error;
        tally.errors[message] = (tally.errors[message] ?? 0) + 1;
        await sleep(afterErrorMs);
      }
    } while (performance.now() < end);
  }));
}

function record({ bytes, body }: Done, { collect }: Job, tally: Tally): void {
  tally.bytes += bytes;
  if (!collect) return;
  const answer = JSON.parse(body.toString('utf8')) as Record<string, string>;
  tally.collected.push(Object.fromEntries(collect.map((field) => [field, answer[field] ?? ''])));
}

function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
