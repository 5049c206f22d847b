/** How many imports run at once in this process, in all and for one caller: one who names slow servers must not take every place. */
import { fail } from '../../shared/errors.ts';

export interface Places {
  /**
   * Takes a place; the answer gives it back.
   * @throws overloaded when all are taken, rate_limited when this caller has a quarter of them
   */
  enter(caller: string): () => void;
}

const retryAfter = 5;

export function makePlaces(total: number): Places {
  const taken = new Map<string, number>();
  const mostOfOne = Math.max(1, Math.floor(total / 4));
  let all = 0;
  const change = (caller: string, by: number) => {
    const left = (taken.get(caller) ?? 0) + by;
    all += by;
    if (left > 0) taken.set(caller, left);
    else taken.delete(caller);
  };
  return {
    enter(caller) {
      if ((taken.get(caller) ?? 0) >= mostOfOne) throw fail('rate_limited', { retryAfter, detail: `At most ${mostOfOne} imports of one caller run at once.` });
      if (all >= total) throw fail('overloaded', { retryAfter });
      change(caller, 1);
      return () => change(caller, -1);
    },
  };
}
