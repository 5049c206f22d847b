/** One after the other: slow work for the same thing waits its turn, so that nobody's crowd takes every core. */

export type TakeTurn = <T>(name: string, work: () => Promise<T>) => Promise<T>;

export function makeTurns(): TakeTurn {
  const last = new Map<string, Promise<unknown>>();
  return async function takeTurn(name, work) {
    const before = last.get(name) ?? Promise.resolve();
    const turn = before.then(work, work);
    last.set(name, turn);
    try {
      return await turn;
    } finally {
      if (last.get(name) === turn) last.delete(name);
    }
  };
}
