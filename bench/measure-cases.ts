/** Measures one case after another, and holds each product case against its floors. */
import type { Stack } from '../deploy/local/stack.ts';
import type { Case, Stand } from './cases/case.ts';
import { drive, settle, type Measurement } from './drive.ts';
import type { Watched } from './measure.ts';
import { errorCount, renderProgress, type Row } from './report.ts';

interface Runner {
  readonly stack: Stack;
  readonly stand: Stand;
  readonly settleSeconds: number;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

export async function runCases(cases: readonly Case[], runner: Runner): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [index, one] of cases.entries()) {
    runner.say(`[${index + 1}/${cases.length}] ${one.name}…`);
    const row = await measureCase(one, rows, runner);
    rows.push(row);
    runner.say(`        ${renderProgress(row)}${errorCount(row) > 0 ? `  !!! ${errorCount(row)} ERRORS: ${Object.keys(row.errors).join('; ')}` : ''}`);
  }
  return rows;
}

async function measureCase(one: Case, before: readonly Row[], runner: Runner): Promise<Row> {
  const { stand, signal, settleSeconds } = runner;
  const watched = [...foundations(runner.stack), ...(one.side === 'floor' ? stand.floors.processes : services(runner.stack))];
  const everybody = [...foundations(runner.stack), ...services(runner.stack), ...stand.floors.processes];
  try {
    const job = await one.prepare(stand);
    await settle(everybody, settleSeconds, signal);
    const measured = await drive(job, watched, signal);
    const settled = await settle(everybody, settleSeconds, signal);
    const failure = await failureOf(one.finish?.(stand, measured.load));
    return makeRow(one, { ...measured, settled, failure }, before);
  } catch (error) {
    signal.throwIfAborted();
    return failedRow(one, error as Error);
  }
}

async function failureOf(work: Promise<void> | undefined): Promise<Error | undefined> {
  return work?.then(() => undefined, (error: unknown) => error as Error);
}

function foundations({ postgres, nats }: Stack): Watched[] {
  const pids: Record<string, number | undefined> = { postgres: postgres.pid, nats: nats.pid };
  return Object.entries(pids).flatMap(([name, pid]) => (pid === undefined ? [] : [{ name, pid }]));
}

function services(stack: Stack): Watched[] {
  return Object.entries(stack.services).flatMap(([name, { pid }]) => (pid === undefined ? [] : [{ name, pid }]));
}

function makeRow({ name, unit, side, floors }: Case, measured: Measurement & { settled: number; failure: Error | undefined }, before: readonly Row[]): Row {
  const { load, costs, settled, failure } = measured;
  const { count, seconds, p50Ms, p99Ms } = load;
  const rate = (unit === 'MB/s' ? load.bytes / 1e6 : count) / seconds;
  const rateOf = (floor: string) => before.find((row) => row.name === floor)?.rate ?? NaN;
  const cost = { ...joinFloors(costs), load: { cpuSeconds: load.cpuSeconds, peakBytes: load.peakBytes } };
  const each = (field: 'cpuSeconds' | 'peakBytes') => Object.fromEntries(Object.entries(cost).map(([process, of]) => [process, of[field]]));
  const ownSeconds = Object.values(cost).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  return {
    name, unit, side, rate, count, seconds, p50Ms, p99Ms,
    errors: { ...load.errors, ...(failure && { [failure.message]: 1 }) },
    ratios: Object.fromEntries(floors.map((floor) => [floor, rate / rateOf(floor)])),
    cpuSeconds: each('cpuSeconds'), peakBytes: each('peakBytes'),
    otherCpuSeconds: Math.max(0, measured.machineCpuSeconds - ownSeconds),
    settledAfterSeconds: settled,
  };
}

/** The floors' processes count as one. */
function joinFloors(costs: Measurement['costs']): Measurement['costs'] {
  const joined: Record<string, { cpuSeconds: number; peakBytes: number }> = {};
  for (const [name, cost] of Object.entries(costs)) {
    const key = name.startsWith('floor ') ? 'floor' : name;
    const known = joined[key] ?? { cpuSeconds: 0, peakBytes: 0 };
    joined[key] = { cpuSeconds: known.cpuSeconds + cost.cpuSeconds, peakBytes: known.peakBytes + cost.peakBytes };
  }
  return joined;
}

function failedRow({ name, unit, side }: Case, error: Error): Row {
  return { name, unit, side, rate: NaN, count: 0, seconds: 0, p50Ms: NaN, p99Ms: NaN, errors: { [error.message]: 1 }, ratios: {}, cpuSeconds: {}, peakBytes: {}, otherCpuSeconds: 0, settledAfterSeconds: 0 };
}
