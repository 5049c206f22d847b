/** Transfers whose share this process saw created. They are recorded in bulk by the sweeper; a crash before that costs one more idempotent call for each. */

export interface Settled {
  note(transferId: string): void;
  /** Takes up to `limit` of those noted. */
  take(limit: number): string[];
}

export function makeSettled(): Settled {
  const ids = new Set<string>();
  return {
    note: (transferId) => void ids.add(transferId),
    take(limit) {
      const taken: string[] = [];
      for (const id of ids) {
        if (taken.length === limit) break;
        taken.push(id);
        ids.delete(id);
      }
      return taken;
    },
  };
}
