/** `npm run bench`: starts a stack and the floors, measures every case, shows the figures, and leaves nothing behind but them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startStack, type Stack } from '../deploy/local/stack.ts';
import { sizeName, type Case } from './cases/case.ts';
import { floorCases } from './cases/floors.ts';
import { largeCases } from './cases/large.ts';
import { smallCases } from './cases/small.ts';
import { startFloors } from './floors/start.ts';
import { readMachine } from './machine.ts';
import { runCases } from './measure-cases.ts';
import { readOptions, usage, type Options } from './options.ts';
import { errorCount, renderReport, writeReport, type Report } from './report.ts';
import { makeBytes, makeStand } from './stand.ts';

const say = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (!options) {
    say(usage);
    return 0;
  }
  const cases = chooseCases(options);
  if (cases.length === 0) throw new Error(`no case has "${options.only}" in its name`);
  const report = await measureAll(cases, options, stopSignal());
  say(`\n${renderReport(report)}\n`);
  say(`Written to ${await writeReport(report, join(import.meta.dirname, 'results'))}`);
  return complainOfErrors(report);
}

function chooseCases({ only, extent }: Options): Case[] {
  const size = sizeName(extent.largeBytes);
  const all = [...floorCases(size), ...smallCases, ...largeCases(size)];
  const chosen = all.filter(({ name }) => name.toLowerCase().includes(only.toLowerCase()));
  const floorsOf = (one: Case) => all.filter(({ name }) => one.floors.includes(name));
  const plain = chosen.filter((one) => one.side === 'floor' && !chosen.some(({ floors }) => floors.includes(one.name)));
  // A floor stands right before the first that is held against it: what else the machine does changes by the minute.
  return [...new Set([...plain, ...chosen.filter(({ side }) => side === 'product').flatMap((one) => [...floorsOf(one), one])])];
}

/** Everything that is started here has ended, and its files are gone, when this ends in whatever way. */
async function measureAll(cases: readonly Case[], options: Options, signal: AbortSignal): Promise<Report> {
  const startedAt = new Date().toISOString();
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const folder = await mkdtemp(join(tmpdir(), 'aex-bench-'));
    undo.push(() => rm(folder, { recursive: true, force: true }));
    const bytes = await makeBytes(join(folder, 'bytes'), options.extent.largeBytes);
    const stack: Stack = await startStack({ dataDir: join(folder, 'data'), port: 0, progress: say, signal, env: { all: profiling(options), gateway: limits } });
    undo.push(() => stack.stop());
    const floors = await startFloors(stack, bytes.folder);
    undo.push(() => floors.stop());
    const machine = await readMachine(stack);
    const stand = await makeStand({ stack, floors, bytes, extent: options.extent, signal });
    const rows = await runCases(cases, { stack, stand, settleSeconds: options.settleSeconds, signal, say });
    return { startedAt, mode: options.mode, machine, rows };
  } finally {
    for (const step of undo.reverse()) await step().catch((error: unknown) => say(`Cleaning up: ${(error as Error).message}`));
  }
}

/** One client sends it all: requests are limited only where that is what is measured (`RATE_LIMITS=on`). */
const limits = { RATE_LIMITS: process.env['RATE_LIMITS'] ?? 'off' };

/** Node writes a profile when a service ends. */
function profiling({ profileFolder }: Options): Record<string, string> {
  return profileFolder ? { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir="${profileFolder}"` } : {};
}

function complainOfErrors({ rows }: Report): number {
  const bad = rows.filter((row) => errorCount(row) > 0);
  for (const { name, errors } of bad) {
    for (const [message, count] of Object.entries(errors)) say(`!!! ERRORS: ${name}: ${count} x ${message}`);
  }
  if (bad.length > 0) say('!!! Figures of rows with errors mean nothing.');
  return bad.length > 0 ? 1 : 0;
}

/** A second signal is the same wish: a terminal and the process above may both pass one Ctrl-C on. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) return;
    say('Stopping…');
    controller.abort(new Error('stopped'));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  return controller.signal;
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`${(error as Error).message}\n`);
  return 1;
});
