/** A fixed number of permits for something that costs memory. Whoever comes when too few are left waits a while, and is refused then. */
import { fail } from '../errors.ts';

export interface Permits {
  /** Resolves with the way to give `count` permits back; one that wants more than there are gets all of them. @throws overloaded */
  take(count?: number): Promise<() => void>;
}

export function makePermits(total: number, waitMs: number): Permits {
  let left = total;
  const waiting = new Set<() => void>();

  function held(count: number): () => void {
    let isHeld = true;
    left -= count;
    return () => {
      if (isHeld) left += count;
      isHeld = false;
      // In their order: a large one is not passed over for ever.
      [...waiting][0]?.();
    };
  }

  return {
    take: (count = 1) => new Promise((resolve, reject) => {
      const wanted = Math.max(1, Math.min(count, total));
      const grant = () => {
        if (left < wanted) return;
        clearTimeout(timer);
        waiting.delete(grant);
        resolve(held(wanted));
        [...waiting][0]?.();
      };
      const timer = setTimeout(() => {
        waiting.delete(grant);
        [...waiting][0]?.();
        reject(fail('overloaded', { retryAfter: 5 }));
      }, waitMs);
      waiting.add(grant);
      if (waiting.size === 1) grant();
    }),
  };
}
