/** What the handlers of this service are made from. */
import type { BlobWriter } from '../../shared/blobs/blobs.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Bus } from '../../shared/rpc.ts';
import type { Outside } from './outside/fetch-source.ts';
import type { Places } from './places.ts';
import type { Store } from './store/imports.ts';

export interface Deps {
  readonly store: Store;
  readonly blobs: BlobWriter;
  readonly bus: Pick<Bus, 'call'>;
  readonly clock: Clock;
  readonly outside: Outside;
  readonly places: Places;
  /** Aborted when the service is told to end: imports under way end then, too. */
  readonly stopping: AbortSignal;
  readonly limits: {
    readonly maxBytes: number;
    /** For an import in all. */
    readonly totalMs: number;
    /** After which a run that does not renew its lease is taken for dead. */
    readonly leaseSeconds: number;
    /** For which ended imports are remembered, so that replays find their answer. */
    readonly keepEndedSeconds: number;
  };
}
