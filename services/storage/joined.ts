/** Work that several requests want at the same time is done once in this process, and its outcome is theirs together. */

export type Joined = <T>(name: string, work: () => Promise<T>) => Promise<T>;

export function makeJoined(): Joined {
  const underWay = new Map<string, Promise<unknown>>();
  return <T>(name: string, work: () => Promise<T>) => {
    const joined = underWay.get(name) as Promise<T> | undefined;
    if (joined) return joined;
    const working = work().finally(() => underWay.delete(name));
    underWay.set(name, working);
    return working;
  };
}
