/** Says now and then that a blob is still being written: an object store shows nothing of a write before its end. */
import type { S3WriteTicket } from '../contracts/uploads.ts';
import { fail } from '../errors.ts';
import type { StoreCalls } from './store-calls.ts';

/** So many unheard touches in a row, and the blob may have been given up by now. */
const unheard = 3;

export interface Touching {
  /** Rejects when the blob was given up, or may have been: what is written after that nobody would know. */
  readonly lost: Promise<never>;
  stop(): void;
}

export function keepTouching(calls: Pick<StoreCalls, 'touch'>, { key, touchMs }: Pick<S3WriteTicket, 'key' | 'touchMs'>): Touching {
  let failures = 0;
  let lose!: (error: unknown) => void;
  const lost = new Promise<never>((_resolve, reject) => { lose = reject; });
  lost.catch(() => undefined);
  const timer = setInterval(() => void calls.touch(key).then(
    (wanted) => {
      failures = 0;
      if (!wanted) lose(fail('upload_expired'));
    },
    (error: unknown) => {
      failures += 1;
      if (failures >= unheard) lose(fail('service_unavailable', {}, error));
    },
  ), touchMs);
  return { lost, stop: () => clearInterval(timer) };
}
