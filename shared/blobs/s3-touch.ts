/** Says now and then that a blob is still being written: an object store shows nothing of a write before its end. */
import type { S3WriteTicket } from '../contracts/uploads.ts';
import { fail } from '../errors.ts';
import type { Interrupt } from './interrupt.ts';
import type { StoreCalls } from './store-calls.ts';

/** So many unheard touches in a row, and the blob may have been given up by now. */
const unheard = 3;

/** Begins to; the answer ends it. Interrupts the writing when the blob was given up, or may have been: what is written after that nobody would know. */
export function keepTouching(calls: Pick<StoreCalls, 'touch'>, { key, touchMs }: Pick<S3WriteTicket, 'key' | 'touchMs'>, interrupt: Interrupt): () => void {
  let failures = 0;
  const timer = setInterval(() => void calls.touch(key).then(
    (wanted) => {
      failures = 0;
      if (!wanted) interrupt.fire(fail('upload_expired'));
    },
    (error: unknown) => {
      failures += 1;
      if (failures >= unheard) interrupt.fire(fail('service_unavailable', {}, error));
    },
  ), touchMs);
  return () => clearInterval(timer);
}
