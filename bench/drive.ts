/** Runs one job in a load process of its own, and watches what the servers cost meanwhile. */
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, LoadReport, LoadResult } from './load/job.ts';
import { cpuSecondsOf, watch, type Costs, type Watched } from './measure.ts';

/** Longer than this after its time is up, and the job counts as stuck. */
const patienceSeconds = 90;
const settleStepSeconds = 0.3;
/** Servers that use less than this share of one core between jobs are at rest. */
const restingShare = 0.12;

export interface Measurement {
  readonly load: LoadResult;
  readonly costs: Costs;
  /** CPU seconds of the whole machine. */
  readonly machineCpuSeconds: number;
}

/** @throws when the load process dies or does not end in time, or when the signal is aborted. */
export async function drive(job: Job, watched: readonly Watched[], signal: AbortSignal): Promise<Measurement> {
  signal.throwIfAborted();
  const child = fork(new URL('./load.ts', import.meta.url), { serialization: 'advanced', signal, killSignal: 'SIGKILL' });
  const timer = setTimer(job, () => child.kill('SIGKILL'));
  try {
    return await new Promise((resolve, reject) => {
      let end = watch([]);
      child.on('message', (report: LoadReport) => {
        if (report.type === 'result') return resolve({ load: report.result, ...end() });
        end = watch(watched);
        child.send('begin');
      });
      child.once('error', reject).once('exit', (code, how) => reject(new Error(`the load process ended early (${how ?? code})`)));
      child.send(job);
    });
  } finally {
    clearTimeout(timer);
  }
}

function setTimer({ seconds, warmupSeconds }: Job, ring: () => void): NodeJS.Timeout {
  return setTimeout(ring, (seconds + warmupSeconds + patienceSeconds) * 1_000);
}

/**
 * Waits until the servers are at rest: what a job left to be done in the background must not be paid by the next.
 * Answers how long that took, in seconds; `limitSeconds` at most.
 */
export async function settle(watched: readonly Watched[], limitSeconds: number, signal: AbortSignal): Promise<number> {
  const begun = performance.now();
  const passed = () => (performance.now() - begun) / 1_000;
  for (let calm = 0; calm < 2 && passed() < limitSeconds;) {
    const before = { cpu: cpuSecondsOf(watched), at: passed() };
    await sleep(settleStepSeconds * 1_000, undefined, { signal });
    const share = (cpuSecondsOf(watched) - before.cpu) / (passed() - before.at);
    calm = share < restingShare ? calm + 1 : 0;
  }
  return Math.max(0, passed() - 2 * settleStepSeconds);
}
