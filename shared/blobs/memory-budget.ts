/** Divides a fixed amount of memory among the transfers under way, so that many slow ones cost no more than a few fast ones. */

const mebibyte = 1024 ** 2;
const smallest = 64 * 1024;
const largest = mebibyte;

export interface MemoryBudget {
  /** Counts one more transfer; the answer ends it. */
  enter(): () => void;
  /** Bytes that one buffer may have at the moment. Every transfer holds two. */
  bufferSize(): number;
}

export function makeMemoryBudget(total = 64 * mebibyte): MemoryBudget {
  let active = 0;
  return {
    enter() {
      active += 1;
      let left = false;
      return () => {
        if (!left) active -= 1;
        left = true;
      };
    },
    bufferSize: () => Math.max(smallest, Math.min(largest, Math.floor(total / (2 * Math.max(1, active))))),
  };
}
