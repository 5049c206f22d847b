/** Works off accepted commands: at once in the process that accepted them, within a second in any other, and again after a process that was killed. */
import type { Logger } from '../../shared/log.ts';
import type { Deps } from './deps.ts';
import { carryOutCompletion } from './handlers/carry-out-completion.ts';

/** Commands that one process carries out at once. */
const width = 8;
const pollMs = 500;
/** Longer than the statements of one command may take together. */
const leaseSeconds = 15;

export interface CompletionWorker {
  /** Says that there may be something to do. */
  wake(): void;
  /** Takes nothing more, and waits for what is under way. */
  stop(): Promise<void>;
}

/** Starts working. Any number of replicas may: each command is claimed by one. `onDone` is told after each batch. */
export function startCompletions(deps: Pick<Deps, 'store' | 'clock' | 'blobs' | 'joined'>, log: Logger, onDone: () => void): CompletionWorker {
  let running: Promise<void> | undefined;
  let wanted = false;
  let stopped = false;

  async function workOff(): Promise<void> {
    do {
      wanted = false;
      for (let claimed = width; claimed === width && !stopped;) {
        const completions = await deps.store.claimCompletions(width, leaseSeconds);
        claimed = completions.length;
        await Promise.all(completions.map((completion) => carryOutCompletion(deps, completion).catch((error: unknown) => {
          const { operationId, folderId, attempts } = completion;
          log.warn({ err: error, folderId, operationId, attempts }, 'a completion is tried again');
        })));
        if (claimed > 0) onDone();
      }
    } while (wanted && !stopped);
  }

  function wake(): void {
    wanted = true;
    if (stopped || running) return;
    running = workOff()
      .catch((error: unknown) => log.warn({ err: error }, 'completions pause'))
      .finally(() => { running = undefined; });
  }

  const poll = setInterval(wake, pollMs);
  return {
    wake,
    async stop() {
      stopped = true;
      clearInterval(poll);
      await running;
    },
  };
}
