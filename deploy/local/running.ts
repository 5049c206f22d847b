// What the system knows about other processes: whether one lives, and what it is.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { findOnPath, run } from './command.ts';

/** Whether a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and belongs to somebody else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** The command line of a process, or '' when there is none to see. */
export async function commandLine(pid: number): Promise<string> {
  const seen = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (seen !== undefined) return seen.replaceAll('\0', ' ');
  if (process.platform === 'linux') return '';
  return run({ file: 'ps', args: ['-o', 'command=', '-p', String(pid)] }).catch(() => '');
}

/** When a process started, in the system's own words; tells two processes that were given one id apart. */
export async function startMark(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The program's name is in brackets and may hold spaces; field 22 is counted from behind it.
  if (stat !== undefined) return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  return (await run({ file: 'ps', args: ['-o', 'lstart=', '-p', String(pid)] }).catch(() => '')).trim();
}

/**
 * Stops what a launcher that died left behind: the process whose id is in `pidFile`, provided that its
 * command line names `mark`, since an id may long have been given to somebody else's process.
 */
export async function stopLeftover(pidFile: string, mark: string, signal: NodeJS.Signals): Promise<void> {
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
  if (!(pid > 1) || !(await commandLine(pid)).includes(mark)) return;
  process.kill(pid, signal);
  for (let waited = 0; waited < 15_000 && isAlive(pid); waited += 50) await sleep(50);
  if (isAlive(pid)) process.kill(pid, 'SIGKILL');
}

/**
 * What to put before a program so that the kernel sends it `signal` when its parent dies, even by
 * SIGKILL; nothing where the system has no such tool.
 */
export async function dieWithParent(signal: 'INT' | 'TERM'): Promise<string[]> {
  const setpriv = process.platform === 'linux' ? await findOnPath('setpriv') : undefined;
  const works = setpriv && (await run({ file: setpriv, args: ['--pdeathsig', signal, 'true'] }).then(() => true, () => false));
  return works ? [setpriv, '--pdeathsig', signal, '--'] : [];
}
