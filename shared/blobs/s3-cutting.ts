/** Cuts batches of chunks into parts of exactly one size; only the last is smaller. Some stores want their parts equal. */

export interface Cut {
  readonly chunks: Buffer[];
  readonly size: number;
  /** Whether the source has ended and nothing comes after this. */
  readonly isLast: boolean;
}

/** The source is asked for one batch more than a part needs, so that the last part is known to be the last. */
export function cutting(nextBatch: () => Promise<Buffer[] | undefined>, partSize: number): { next(): Promise<Cut> } {
  let waiting: Buffer[] = [];
  let waitingSize = 0;
  let ended = false;

  async function fill(): Promise<void> {
    while (!ended && waitingSize <= partSize) {
      const batch = await nextBatch();
      if (!batch) ended = true;
      for (const chunk of batch ?? []) {
        waiting.push(chunk);
        waitingSize += chunk.length;
      }
    }
  }

  function takePart(): Buffer[] {
    const chunks: Buffer[] = [];
    let missing = Math.min(partSize, waitingSize);
    waitingSize -= missing;
    while (missing > 0) {
      const [chunk] = waiting as [Buffer];
      chunks.push(chunk.subarray(0, missing));
      if (chunk.length > missing) waiting[0] = chunk.subarray(missing);
      else waiting.shift();
      missing -= Math.min(missing, chunk.length);
    }
    return chunks;
  }

  return {
    async next() {
      await fill();
      const chunks = takePart();
      return { chunks, size: chunks.reduce((sum, chunk) => sum + chunk.length, 0), isLast: ended && waitingSize === 0 };
    },
  };
}
