/** Gathers a stream of items into batches: each holds all that came while the one before was worked on. */
import { setImmediate } from 'node:timers/promises';

/** Ends when the source does, after its last item; throws what the source throws, after the items before. */
export async function* gathered<T>(source: AsyncIterable<T>): AsyncGenerator<T[]> {
  let waiting: T[] = [];
  let ended = false;
  let wake: () => void = () => undefined;
  const reading = (async () => {
    try {
      for await (const item of source) {
        waiting.push(item);
        wake();
      }
    } finally {
      ended = true;
      wake();
    }
  })();
  // Thrown again at the end, where somebody waits for it.
  reading.catch(() => undefined);
  while (waiting.length > 0 || !ended) {
    if (waiting.length === 0) await new Promise<void>((resolve) => { wake = resolve; });
    // What came in one packet is one batch.
    await setImmediate();
    const batch = waiting;
    waiting = [];
    if (batch.length > 0) yield batch;
  }
  await reading;
}
