/** What the handlers of this service are made from. */
import type { BlobStore } from '../../shared/blobs/blobs.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Bus } from '../../shared/rpc.ts';
import type { PlanKey } from '../../shared/tokens.ts';
import type { Digests } from './digests.ts';
import type { Joined } from './joined.ts';
import type { Settled } from './settled.ts';
import type { Store } from './store/store.ts';

export interface Deps {
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly bus: Pick<Bus, 'call'>;
  readonly clock: Clock;
  readonly digests: Digests;
  readonly joined: Joined;
  readonly settled: Settled;
  readonly keys: {
    readonly deleteToken: readonly Buffer[];
    readonly plan: readonly PlanKey[];
    readonly requestDigest: readonly Buffer[];
  };
  readonly baseUrl: string;
  /** Seconds. */
  readonly limits: {
    /** From the begin of a multipart upload to its expiry. */
    readonly uploadTtl: number;
    /** After which an unsettled share is taken for left behind. */
    readonly settleAfter: number;
    /** Without a write after which an unfinished file is given up. */
    readonly blobIdle: number;
    /** For which a removed file may still be asked for by an open ticket. */
    readonly ticketGrace: number;
    /** For which ended transfers and uploads are remembered, so that replays find their answer. */
    readonly keepEnded: number;
  };
}
