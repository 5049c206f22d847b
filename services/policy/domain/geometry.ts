/** How the bytes of a planned transfer travel: lane, part size and part count within the deployment's bounds. */
import type { lanes } from '../../../shared/contracts/plans.ts';
import { fail, failField } from '../../../shared/errors.ts';

type Lane = (typeof lanes)[number];

/** Bytes and counts. */
export interface TransferBounds {
  readonly maxBytes: number;
  readonly partSizeMin: number;
  readonly partSizeDefault: number;
  readonly partSizeMax: number;
  readonly maxParts: number;
  readonly maxParallelParts: number;
  /** Whether clients can reach the object store. */
  readonly direct: boolean;
}

export interface Wanted {
  readonly size?: number | undefined;
  readonly lane?: Lane | undefined;
  readonly partSize?: number | undefined;
}

export interface Route {
  readonly lane: Lane;
  readonly fallback: { lane: Lane; when: string }[];
  readonly maxBytes: number;
  readonly geometry: { partSize: number; partCount?: number; maxParallelParts: number };
}

/** Files up to this size go by one request unless the sender asks otherwise. */
const singleUpTo = 64 * 1024 * 1024;

/**
 * Chooses the lane and its geometry. The direct lane needs an object store that clients can reach;
 * without one the plan falls back to multipart.
 * @throws invalid_request that names the field; payload_too_large
 */
export function chooseRoute(wanted: Wanted, bounds: TransferBounds): Route {
  const { size } = wanted;
  if (size !== undefined && size > bounds.maxBytes) {
    throw fail('payload_too_large', { detail: `size: must be at most ${bounds.maxBytes} bytes`, errors: [{ path: 'size', message: `must be at most ${bounds.maxBytes} bytes` }] });
  }
  const asked = wanted.lane === 'direct' && !bounds.direct ? 'multipart' : wanted.lane;
  const lane = asked ?? (size === undefined || size <= singleUpTo ? 'single' : 'multipart');
  if (lane !== 'single' && size === undefined) throw failField('size', `is required for the ${lane} lane`);
  const partSize = choosePartSize(wanted, bounds);
  return {
    lane,
    fallback: fallbackOf(lane, size),
    maxBytes: size ?? bounds.maxBytes,
    geometry: {
      partSize,
      ...(size !== undefined && { partCount: Math.ceil(size / partSize) }),
      maxParallelParts: bounds.maxParallelParts,
    },
  };
}

function choosePartSize({ size, partSize }: Wanted, bounds: TransferBounds): number {
  const smallest = Math.max(bounds.partSizeMin, Math.ceil((size ?? 0) / bounds.maxParts));
  if (partSize === undefined) return Math.max(smallest, bounds.partSizeDefault);
  if (partSize < smallest) throw failField('partSize', `must be at least ${smallest} bytes`);
  if (partSize > bounds.partSizeMax) throw failField('partSize', `must be at most ${bounds.partSizeMax} bytes`);
  return partSize;
}

function fallbackOf(lane: Lane, size: number | undefined): Route['fallback'] {
  if (lane === 'single') return size === undefined ? [] : [{ lane: 'multipart', when: 'one long request does not get through' }];
  if (lane === 'direct') return [{ lane: 'multipart', when: 'the object store cannot be reached' }];
  return [{ lane: 'single', when: 'the parts cannot be sent one by one' }];
}
