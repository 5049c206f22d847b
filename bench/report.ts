/** Rows of figures, as aligned text for people and as JSON for machines. */
import { mkdir, writeFile } from 'node:fs/promises';
import { describeMachine, type Machine } from './machine.ts';

export interface Row {
  readonly name: string;
  readonly unit: 'req/s' | 'MB/s';
  readonly side: 'floor' | 'product';
  /** Requests or megabytes (10^6) per second. */
  readonly rate: number;
  readonly count: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: Readonly<Record<string, number>>;
  /** Its rate divided by the floor's, by the floor's name. */
  readonly ratios: Readonly<Record<string, number>>;
  /** By process; all floors' own processes together are `floor`, the load process is `load`. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
  readonly peakBytes: Readonly<Record<string, number>>;
  /** CPU seconds of everything else on the machine meanwhile: the less, the more the row is worth. */
  readonly otherCpuSeconds: number;
  /** How long the servers worked on in the background afterwards. */
  readonly settledAfterSeconds: number;
}

export interface Report {
  readonly startedAt: string;
  readonly mode: 'quick' | 'full';
  readonly machine: Machine;
  readonly rows: readonly Row[];
}

const columns = ['gateway', 'storage', 'policy', 'audit', 'postgres', 'nats', 'floor', 'load'];

/** Three tables: speed, CPU, memory. */
export function renderReport({ startedAt, mode, machine, rows }: Report): string {
  return [
    `${mode} run of ${startedAt}; ${describeMachine(machine)}`,
    renderTable(['', 'rate', '', 'p50 ms', 'p99 ms', 'errors', 'of its floor'], rows.map(speedCells)),
    `CPU seconds a second (1.00 is one core), also of everything else on the machine; CPU milliseconds an operation without the load's own`,
    renderTable(['', ...columns, 'others', 'ms/op'], rows.map(cpuCells)),
    'Peak memory, MiB; and seconds of work left to do in the background afterwards',
    renderTable(['', ...columns, 'after, s'], rows.map(memoryCells)),
  ].join('\n\n');
}

export async function writeReport(report: Report, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const file = `${folder}/${report.startedAt.replaceAll(':', '-')}.json`;
  await writeFile(file, `${JSON.stringify(report, undefined, 2)}\n`);
  return file;
}

/** One line about a row, for whoever waits. */
export function renderProgress(row: Row): string {
  const [, rate, unit, p50, p99] = speedCells(row);
  return `${rate} ${unit}, p50 ${p50} ms, p99 ${p99} ms`;
}

export function errorCount({ errors }: Row): number {
  return Object.values(errors).reduce((sum, count) => sum + count, 0);
}

function speedCells(row: Row): string[] {
  const ratios = Object.entries(row.ratios).map(([floor, ratio]) => `${ratio.toFixed(2)} of ${floor.replace(/^floor: (… > )?/, '')}`);
  return [row.name, round(row.rate), row.unit, round(row.p50Ms), round(row.p99Ms), String(errorCount(row)), ratios.join('; ')];
}

function cpuCells({ name, cpuSeconds, otherCpuSeconds, seconds, count }: Row): string[] {
  const { load: _load, ...servers } = cpuSeconds;
  const all = Object.values(servers).reduce((sum, one) => sum + one, 0);
  const aSecond = (value: number) => (value / seconds).toFixed(2);
  return [name, ...columns.map((column) => cell(cpuSeconds[column], aSecond)), cell(otherCpuSeconds, aSecond), round((all * 1_000) / count)];
}

function memoryCells({ name, peakBytes, settledAfterSeconds }: Row): string[] {
  return [name, ...columns.map((column) => cell(peakBytes[column], (value) => String(Math.round(value / 1_024 ** 2)))), settledAfterSeconds.toFixed(1)];
}

function cell(value: number | undefined, render: (value: number) => string): string {
  return value === undefined ? '-' : render(value);
}

/** Three digits that count. */
function round(value: number): string {
  if (!Number.isFinite(value)) return '-';
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toFixed(value >= 10 ? 1 : 2);
}

/** The first and the last column lean left, numbers right. */
function renderTable(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((cells) => cells[column]!.length)));
  const isText = (column: number) => column === 0 || head[column] === '' || head[column] === 'of its floor';
  const line = (cells: string[]) => cells.map((text, column) => (isText(column) ? text.padEnd(widths[column]!) : text.padStart(widths[column]!))).join('  ').trimEnd();
  return [line(head), '-'.repeat(line(head).length), ...rows.map(line)].join('\n');
}
