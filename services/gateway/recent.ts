/** A map that remembers what was lately asked for, and forgets the rest: it never holds more than a maximum. */

export interface Recent<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
}

/** Two halves: when the younger is full it becomes the older, and what nobody asked for since is gone. A look-up moves nothing within a half. */
export function rememberRecent<V>(maximum: number): Recent<V> {
  let young = new Map<string, V>();
  let old = new Map<string, V>();

  function set(key: string, value: V): void {
    if (young.size >= maximum / 2) {
      old = young;
      young = new Map();
    }
    young.set(key, value);
  }

  return {
    get(key) {
      const value = young.get(key);
      if (value !== undefined) return value;
      const kept = old.get(key);
      if (kept !== undefined) set(key, kept);
      return kept;
    },
    set,
  };
}
