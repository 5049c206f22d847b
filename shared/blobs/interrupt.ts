/** Ends many short waits from one place. `Promise.race` with a promise that stays open would do it, too, but keeps whatever each wait brought until then: all bytes of an upload. */

export interface Interrupt {
  /** Waits for the work, or rejects as soon as there is a reason to. */
  until<T>(work: Promise<T>): Promise<T>;
  /** Gives the reason, once; waits to come are rejected with it, too. */
  fire(error: unknown): void;
}

export function makeInterrupt(): Interrupt {
  const waiting = new Set<(error: unknown) => void>();
  let fired: { error: unknown } | undefined;
  return {
    until: (work) => new Promise((resolve, reject) => {
      if (fired) {
        work.catch(() => undefined);
        return reject(fired.error);
      }
      waiting.add(reject);
      work.then(resolve, reject).finally(() => waiting.delete(reject));
    }),
    fire(error) {
      fired ??= { error };
      for (const reject of waiting) reject(fired.error);
      waiting.clear();
    },
  };
}
