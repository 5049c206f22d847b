/** Watches how much memory processes of a stack take. */
import { readFile } from 'node:fs/promises';
import type { Stack } from '../../deploy/local/stack.ts';
import { sleep } from './fault-stack.ts';

/** Watches the resident memory of the two services that see bytes, until told to stop. Answers the peaks in bytes, and prints them. */
export function watchMemory(stack: Pick<Stack, 'services'>): () => Promise<Record<string, number>> {
  const peaks: Record<string, number> = { gateway: 0, storage: 0 };
  let watching = true;
  const watched = (async () => {
    for (; watching; await sleep(50)) {
      for (const name of Object.keys(peaks)) {
        const status = await readFile(`/proc/${stack.services[name]!.pid}/status`, 'utf8');
        peaks[name] = Math.max(peaks[name]!, Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1_024);
      }
    }
  })();
  return async () => {
    watching = false;
    await watched;
    process.stdout.write(`peaks in MiB: ${JSON.stringify(Object.fromEntries(Object.entries(peaks).map(([name, peak]) => [name, Math.round(peak / 1_024 ** 2)])))}\n`);
    return peaks;
  };
}
