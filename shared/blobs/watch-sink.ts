/** Writes to a sink and notices at once when it closes, fails, or takes nothing for too long. */
import type { Readable, Writable } from 'node:stream';
import { fail } from '../errors.ts';

/** A stream that fails after its watcher has stopped must not end the process. */
export function ignoreLateErrors(stream: Readable | Writable): void {
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore);
}

function ignore(): void { /* whoever was interested has been told */ }

export interface SinkWatch {
  /** Resolves when the sink has taken the chunk, whose memory is free again then. */
  write(chunk: Buffer): Promise<void>;
  stop(): void;
}

/** Begins to watch. A sink that takes nothing for `idleMs` is destroyed: it would hold its buffers for ever. */
export function watchSink(sink: Writable, idleMs: number): SinkWatch {
  const waiting = new Set<(error: unknown) => void>();
  let failure: { error: unknown } | undefined;

  function failWith(error: unknown): void {
    failure ??= { error };
    for (const reject of waiting) reject(failure.error);
    waiting.clear();
  }
  const onClose = () => failWith(new Error('the sink closed early'));
  const idle = setTimeout(() => {
    if (waiting.size === 0) return void idle.refresh();
    failWith(fail('deadline_exceeded'));
    sink.destroy();
  }, idleMs);

  // Some sinks drop the callbacks of what they had queued when they are destroyed, hence the events.
  sink.on('close', onClose);
  sink.on('error', failWith);
  ignoreLateErrors(sink);
  if (sink.destroyed) onClose();

  return {
    write: (chunk) => new Promise((resolve, reject) => {
      if (failure) return reject(failure.error);
      if (waiting.size === 0) idle.refresh();
      waiting.add(reject);
      sink.write(chunk, (error) => {
        waiting.delete(reject);
        idle.refresh();
        if (error) reject(error);
        else resolve();
      });
    }),
    stop() {
      clearTimeout(idle);
      sink.off('close', onClose).off('error', failWith);
    },
  };
}
