/** What processes cost while a measurement runs: CPU seconds and peak memory, from /proc. Where there is no /proc, nothing. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** The kernel counts CPU time in hundredths of a second for everybody who asks. */
const ticksPerSecond = 100;
const sampleMs = 100;

/** A named process and everything that it started, such as PostgreSQL's sessions. */
export interface Watched {
  readonly name: string;
  readonly pid: number;
}

export interface Cost {
  readonly cpuSeconds: number;
  /** Each process's own peak summed, memory that they share counted once. */
  readonly peakBytes: number;
}

export type Costs = Readonly<Record<string, Cost>>;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** Of itself and of the children that ended. */
  readonly ticks: number;
}

/** Starts to watch. The answered function ends that and says what it cost. */
export function watch(watched: readonly Watched[]): () => { costs: Costs; machineCpuSeconds: number } {
  const trees = treesOf(watched);
  const before = trees.map(cpuTicks);
  const machineBefore = machineTicks();
  const sampler = startSampling(trees);
  return () => {
    const after = treesOf(watched);
    const machineCpuSeconds = (machineTicks() - machineBefore) / ticksPerSecond;
    const sampled = sampler?.();
    const costs = Object.fromEntries(watched.map(({ name }, index) => [name, {
      cpuSeconds: (cpuTicks(after[index]!) - before[index]!) / ticksPerSecond,
      peakBytes: Math.max(sampled?.[index] ?? 0, peakOf(after[index]!, sampled ? 'VmRSS' : 'VmHWM')),
    }]));
    return { costs, machineCpuSeconds };
  };
}

/** CPU seconds of all of them so far. */
export function cpuSecondsOf(watched: readonly Watched[]): number {
  return treesOf(watched).map(cpuTicks).reduce((sum, ticks) => sum + ticks, 0) / ticksPerSecond;
}

function treesOf(watched: readonly Watched[]): Stat[][] {
  const all = listProcesses();
  return watched.map(({ pid }) => {
    const tree = all.filter((stat) => stat.pid === pid);
    for (const member of tree) tree.push(...all.filter((stat) => stat.parent === member.pid));
    return tree;
  });
}

function listProcesses(): Stat[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => readStat(Number(name)) ?? []);
  } catch {
    return [];
  }
}

function readStat(pid: number): Stat | undefined {
  const text = read(pid, 'stat');
  // The program's name is in brackets and may hold spaces; what follows it begins with field 3.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  if (fields.length < 15) return undefined;
  return { pid, parent: Number(fields[1]), ticks: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) };
}

/** Time that any process of the machine was running, or its cores were taken away by the host: everything but idle and waiting for disks. */
function machineTicks(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = readText('/proc/stat').split('\n', 1)[0]!.split(/\s+/).map(Number);
  return user + nice + system + irq + softirq + steal;
}

function cpuTicks(tree: readonly Stat[]): number {
  return tree.reduce((sum, { ticks }) => sum + ticks, 0);
}

/** Resets the kernel's own record of the peaks. Where that is not allowed, looks every now and then. */
function startSampling(trees: readonly Stat[][]): (() => number[]) | undefined {
  try {
    for (const { pid } of trees.flat()) writeFileSync(`/proc/${pid}/clear_refs`, '5');
    return undefined;
  } catch {
    const peaks = trees.map(() => 0);
    const sample = () => trees.forEach((tree, index) => (peaks[index] = Math.max(peaks[index]!, peakOf(tree, 'VmRSS'))));
    const timer = setInterval(sample, sampleMs);
    return () => {
      clearInterval(timer);
      return peaks;
    };
  }
}

function peakOf(tree: readonly Stat[], field: 'VmHWM' | 'VmRSS'): number {
  const each = tree.map(({ pid }) => readMemory(pid, field));
  const shared = Math.max(0, ...each.map((memory) => memory.shared));
  return each.reduce((sum, { total, shared }) => sum + Math.max(0, total - shared), shared);
}

function readMemory(pid: number, field: string): { total: number; shared: number } {
  const text = read(pid, 'status');
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1_024;
  return { total: bytes(field), shared: bytes('RssShmem') + bytes('RssFile') };
}

/** Empty when the process has ended. */
function read(pid: number, file: string): string {
  return readText(`/proc/${pid}/${file}`);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
