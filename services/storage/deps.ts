/** What the handlers of this service are made from. */
import type { BlobStore } from '../../shared/blobs/blobs.ts';
import type { Clock } from '../../shared/clock.ts';
import type { DomainEvent } from '../../shared/events.ts';
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
  /** Tells whoever follows a pipe that something came, or that it ended. Nobody counts on it: followers also look by themselves. */
  readonly wakePipe: (id: string) => void;
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
    /** Without a word from the writer of an append upload after which it is taken for gone. */
    readonly appendLease: number;
    /** For which a removed file may still be asked for by an open ticket. */
    readonly ticketGrace: number;
    /** For which ended transfers and uploads are remembered, so that replays find their answer. */
    readonly keepEnded: number;
  };
  /** What a folder may hold, and whether its files may be sent straight to the object store. */
  readonly folder: { readonly maxFiles: number; readonly maxBytes: number; readonly direct: boolean };
  /** Publishes an event of something that changed nothing. */
  readonly publish: (event: DomainEvent) => void;
  /** Says that a command was accepted. */
  readonly onAccepted: () => void;
}
