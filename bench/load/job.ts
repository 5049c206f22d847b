/** What a measurement asks of the load process, and what it answers. Plain data: it crosses between processes. */

/** One HTTP request to a server on this machine. */
export interface Wire {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A body as text. */
  readonly text?: string;
  /** A body of so many random bytes, in place of `text`. */
  readonly bytes?: number;
  /** Where in the endlessly repeated block the random bytes begin; 0 when absent. */
  readonly from?: number;
}

/** What one operation does. */
export type Flow =
  | {
      /** One request an operation, from the list in turn; each entry once only when `once` is set. */
      readonly kind: 'requests';
      readonly requests: readonly Wire[];
      readonly status: number;
      /** Bytes that every answer's body must have. */
      readonly size?: number;
      readonly once?: boolean;
    }
  /** A plan, then the planned PUT of `size` bytes. */
  | { readonly kind: 'single'; readonly plan: Wire; readonly size: number }
  /** Init, parts several at a time, complete. Sizes in bytes. */
  | { readonly kind: 'multipart'; readonly init: Wire; readonly size: number; readonly partSize: number; readonly parallel: number; readonly headers: Readonly<Record<string, string>> };

export interface Job {
  readonly port: number;
  /** Operations under way at once. */
  readonly lanes: number;
  /** An operation that began within the measured seconds counts; the measurement ends with the last of them. */
  readonly seconds: number;
  readonly warmupSeconds: number;
  readonly flow: Flow;
  /** Run before the measurement in place of `flow`, where that would take too long. */
  readonly warmup?: Flow;
  /** File with the random bytes that bodies are made of, again and again from its start. */
  readonly blockFile: string;
  /** Fields of the last JSON answer of each operation that are to be handed back. */
  readonly collect?: readonly string[];
}

export interface LoadResult {
  /** Operations that succeeded. */
  readonly count: number;
  /** Body bytes that they moved. */
  readonly bytes: number;
  /** From the first operation's begin to the last one's end. */
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** What went wrong, and how often; the warm-up's errors count as well. */
  readonly errors: Readonly<Record<string, number>>;
  /** CPU seconds of the load process itself. */
  readonly cpuSeconds: number;
  /** Bytes that the load process held at most. */
  readonly peakBytes: number;
  readonly collected: readonly Readonly<Record<string, string>>[];
}

/** What the load process tells while it works: `ready` is answered by any message, and then the measurement begins. */
export type LoadReport = { readonly type: 'ready' } | { readonly type: 'result'; readonly result: LoadResult };
