/** What moving bytes to and from an object store needs of whoever has its credentials. */
import { randomBytes } from 'node:crypto';
import { blobs } from '../contracts/blobs.ts';
import type { Bus, CallContext } from '../rpc.ts';
import type { StoredPart } from './blobs.ts';

export interface StoreCalls {
  /** Says that a blob is still being written. Answers false when it was given up meanwhile. */
  touch(key: string): Promise<boolean>;
  /** Where so many bytes of a stream go. */
  signWrite(wanted: { key: string; size: number; partNumber?: number }): Promise<string>;
  /** Makes the parts of a stream one object. */
  seal(key: string, parts: readonly StoredPart[]): Promise<void>;
  signRead(key: string): Promise<string>;
}

/** The storage service has them. */
export function callStorage(bus: Pick<Bus, 'call'>): StoreCalls {
  return {
    touch: async (key) => (await bus.call(blobs.touchBlob, { key }, ownContext())).wanted,
    signWrite: async (wanted) => (await bus.call(blobs.signWrite, wanted, ownContext())).url,
    async seal(key, parts) { await bus.call(blobs.sealBlob, { key, parts: [...parts] }, ownContext()); },
    signRead: async (key) => (await bus.call(blobs.signRead, { key }, ownContext())).url,
  };
}

/** A request of the driver's own, with a trace of its own. */
function ownContext(): CallContext {
  return { requestId: `blob-${randomBytes(8).toString('hex')}`, traceparent: `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00` };
}
