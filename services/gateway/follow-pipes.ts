/** Follows pipes for all who read them at this gateway: one subscription and one question at a time for each pipe, however many readers it has. */
import type { AnswerOf } from '../../shared/contract.ts';
import { pipes } from '../../shared/contracts/pipes.ts';
import { fail, type Failure } from '../../shared/errors.ts';
import { onPipeChange } from '../../shared/pipe-wakes.ts';
import type { Bus, CallContext } from '../../shared/rpc.ts';
import { insist, isUnknown } from './insist.ts';
import { toFailure } from './problem.ts';

/** A word that was lost costs so long. */
const lookMs = 1_000;
/** When storage has not answered for so long, nobody knows whether the pipe still lives, and a reader must not wait for ever. */
const unknownSeconds = 30;

/** Bytes of a pipe from `from` up to `size`; the ticket may hold only the first of them. */
type Look = AnswerOf<typeof pipes.followPipe> & { readonly from: number };

export interface FollowedPipe {
  /**
   * Waits until something has come after an offset, or until what came before it was all: a size that is no more than the offset then.
   * @throws transfer_not_found when the pipe failed, service_unavailable when nothing is known of it for too long or its reader has left
   */
  after(offset: number): Promise<Look>;
  /** Aborted once the pipe has failed. */
  readonly failed: AbortSignal;
  /** Ends what waits here. */
  leave(): void;
}

export interface FollowPipes {
  follow(pipeId: string, context: CallContext): FollowedPipe;
}

/** What the readers of a pipe at this gateway share. */
interface Watched {
  look: Look | undefined;
  readonly failed: AbortController;
  readonly readers: Set<FollowedPipe>;
  /** Resolves whatever waits for news. */
  wake(): void;
  readonly news: Set<() => void>;
  stop(): void;
}

export function openFollowPipes(bus: Bus): FollowPipes {
  const watched = new Map<string, Watched>();

  function join(pipeId: string, context: CallContext): Watched {
    const known = watched.get(pipeId);
    if (known) return known;
    const made = watch(bus, pipeId, context);
    watched.set(pipeId, made);
    // One that failed is not joined any more.
    made.failed.signal.addEventListener('abort', () => forget(pipeId, made));
    return made;
  }
  function forget(pipeId: string, pipe: Watched): void {
    pipe.stop();
    if (watched.get(pipeId) === pipe) watched.delete(pipeId);
  }

  return {
    follow(pipeId, { requestId, traceparent }) {
      const context = { requestId, traceparent };
      const pipe = join(pipeId, context);
      const ask = async (from: number) => ({ ...(await insist(() => bus.call(pipes.followPipe, { pipeId, from }, context), unknownSeconds)), from });
      const reader: FollowedPipe = {
        failed: pipe.failed.signal,
        async after(offset) {
          for (;;) {
            pipe.failed.signal.throwIfAborted();
            if (!pipe.readers.has(reader)) throw fail('service_unavailable', { detail: 'The reader has left.' });
            const { look } = pipe;
            if (look && look.size > offset) return look.from === offset ? look : ask(offset);
            if (look?.state === 'complete') return look;
            await new Promise<void>((resolve) => pipe.news.add(resolve));
          }
        },
        leave() {
          pipe.readers.delete(reader);
          pipe.wake();
          if (pipe.readers.size === 0) forget(pipeId, pipe);
        },
      };
      pipe.readers.add(reader);
      return reader;
    },
  };
}

/** Looks at a pipe whenever something is said about it, and from time to time, until it ends or is stopped. */
function watch(bus: Bus, pipeId: string, context: CallContext): Watched {
  const pipe: Watched = { look: undefined, failed: new AbortController(), readers: new Set(), news: new Set(), wake, stop };
  const unsubscribe = onPipeChange(bus, pipeId, look);
  const timer = setInterval(look, lookMs);
  let knownAt = Date.now();
  let stopped = false;
  let looking = false;
  let again = false;
  look();
  return pipe;

  function wake(): void {
    for (const resolve of pipe.news) resolve();
    pipe.news.clear();
  }
  function stop(): void {
    if (stopped) return;
    stopped = true;
    clearInterval(timer);
    unsubscribe();
  }
  function giveUp(error: Failure): void {
    stop();
    pipe.failed.abort(error);
  }
  /** One look at a time; what is said meanwhile is looked at after it. */
  function look(): void {
    again = looking;
    if (looking || stopped) return;
    looking = true;
    void lookOnce().finally(() => {
      looking = false;
      wake();
      if (again) look();
    });
  }
  async function lookOnce(): Promise<void> {
    const from = pipe.look?.size ?? 0;
    try {
      pipe.look = { ...(await bus.call(pipes.followPipe, { pipeId, from }, context)), from };
      knownAt = Date.now();
      if (pipe.look.state === 'failed') giveUp(fail('transfer_not_found', { detail: 'The sender of the pipe was lost.' }));
      else if (pipe.look.state === 'complete') stop();
    } catch (error) {
      if (!isUnknown(error) || Date.now() - knownAt > unknownSeconds * 1_000) giveUp(toFailure(error));
    }
  }
}
