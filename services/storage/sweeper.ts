/** What storage does by itself every few seconds: expiry, shares left behind, files nobody needs. */
import { randomBytes } from 'node:crypto';
import { shares } from '../../shared/contracts/shares.ts';
import { eventOfService, type EventType } from '../../shared/events.ts';
import type { CallContext } from '../../shared/rpc.ts';
import type { SweepSteps } from '../../shared/sweeper.ts';
import type { Deps } from './deps.ts';
import { createShare } from './handlers/release-transfer.ts';
import { sealUpload } from './handlers/seal-upload.ts';

/** Rows a statement takes at most, and statements a step makes at most before the next step has its turn. */
const batchSize = 500;
const maxBatches = 40;
/** Seconds: a fetch holds a file open, but comes to an object only when it reads it. */
const objectGrace = 5;
/** Calls to policy, or looks at files, under way at once. */
const width = 16;

/** Every step by its name, in their order: what frees files comes before what removes them. */
export function sweepSteps(deps: Deps): SweepSteps {
  const { store, clock, limits } = deps;
  const event = (eventType: EventType) => eventOfService('storage', clock(), { eventType, targetType: 'file', targetId: null });
  return {
    recordSettled: () => recordSettled(deps),
    expireUploads: () => untilDone(() => store.expireUploads(event('upload.expired'), batchSize)),
    sealUploads: () => sealUploads(deps),
    expireTransfers: () => untilDone(() => store.expireTransfers(event('transfer.expired'), batchSize)),
    createShares: () => createShares(deps),
    endShares: () => endShares(deps),
    giveUpUnfinished: () => giveUpUnfinished(deps),
    removeGarbage: () => untilDone(() => removeGarbage(deps)),
    forgetRemoved: () => untilDone(() => forgetRemoved(deps)),
    purgeParts: () => untilDone(() => store.purgeParts(limits.keepEnded, batchSize)),
    purgeUploads: () => untilDone(() => store.purgeUploads(limits.keepEnded, batchSize)),
    purgeOperations: () => untilDone(() => store.purgeOperations(limits.keepEnded, batchSize)),
    purgeTransfers: () => untilDone(() => store.purgeTransfers(limits.keepEnded, batchSize)),
  };
}

async function untilDone(step: () => Promise<number>): Promise<void> {
  for (let batches = 0; batches < maxBatches; batches += 1) {
    if ((await step()) < batchSize) return;
  }
}

/** Records what handlers saw settled; a stop does it once more. What cannot be recorded is kept for the next time. */
export async function recordSettled({ store, settled }: Pick<Deps, 'store' | 'settled'>): Promise<void> {
  for (let ids = settled.take(batchSize); ids.length > 0; ids = settled.take(batchSize)) {
    await store.settle(ids, 'created').catch((error: unknown) => {
      for (const id of ids) settled.note(id);
      throw error;
    });
  }
}

/** Promise: no stored transfer stays without its share, whatever crashed between the two. */
async function createShares({ store, bus, limits }: Deps): Promise<void> {
  const transfers = await store.findUnshared(limits.settleAfter, batchSize);
  await inGroups(transfers, async (group) => {
    const results = await Promise.allSettled(group.map(async (transfer) => {
      if (!transfer.endedAt) await createShare(bus, transfer, sweepContext());
    }));
    const idsWhere = (status: string) => group.filter((_transfer, index) => results[index]!.status === status).map(({ id }) => id);
    await store.settle(idsWhere('fulfilled'), 'created');
    await store.settleLater(idsWhere('rejected'));
    // When none of a group came through, policy is away and the others can wait.
    const first = results[0];
    if (first?.status === 'rejected' && idsWhere('fulfilled').length === 0) throw first.reason;
  });
}

/** Promise: no upload stays half put together in the object store, whatever crashed in between. */
async function sealUploads(deps: Deps): Promise<void> {
  const { store, limits } = deps;
  const ids = await store.findAssembling(limits.settleAfter, batchSize);
  await inGroups(ids, async (group) => {
    const results = await Promise.allSettled(group.map(async (id) => {
      const upload = await store.findUploadWithParts(id);
      if (upload?.state === 'assembling') await sealUpload(deps, upload, upload.parts);
    }));
    const failed = group.filter((_id, index) => results[index]!.status === 'rejected');
    if (failed.length > 0) await store.assembleLater(failed);
  });
}

/** Promise: no deleted transfer keeps a live share. */
async function endShares({ store, bus, limits }: Deps): Promise<void> {
  const targetIds = await store.findUnended(limits.settleAfter, batchSize);
  if (targetIds.length === 0) return;
  await bus.call(shares.endShares, { targetIds }, sweepContext());
  await store.settle(targetIds, 'ended');
}

/** Gives up files whose writer is gone: nothing was written for a while, and nobody finished them. */
async function giveUpUnfinished({ store, blobs, limits, clock }: Deps): Promise<void> {
  const keys = await store.findUnfinished(batchSize);
  const idle: string[] = [];
  await inGroups(keys, async (group) => {
    const touched = await Promise.all(group.map((key) => blobs.lastTouched(key)));
    idle.push(...group.filter((_key, index) => (touched[index] ?? 0) < clock() - limits.blobIdle * 1_000));
  });
  if (idle.length > 0) await store.discardBlobs(idle);
  const busy = keys.filter((key) => !idle.includes(key));
  if (busy.length > 0) await store.checkLater(busy, limits.blobIdle);
}

/** Removes files and remembers them for a while: a ticket handed out just before may still make one again. */
async function removeGarbage({ store, blobs }: Deps): Promise<number> {
  const keys = await store.findGarbage(batchSize, blobs.objects ? objectGrace : 0);
  await inGroups(keys, async (group) => {
    await Promise.all(group.map((key) => blobs.remove(key)));
    await store.markRemoved(group);
  });
  return keys.length;
}

async function forgetRemoved({ store, blobs, limits }: Deps): Promise<number> {
  const keys = await store.findRemoved(limits.ticketGrace, batchSize);
  await inGroups(keys, async (group) => { await Promise.all(group.map((key) => blobs.remove(key))); });
  if (keys.length > 0) await store.forgetBlobs(keys);
  return keys.length;
}

async function inGroups<T>(items: readonly T[], work: (group: T[]) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += width) await work(items.slice(at, at + width));
}

/** A request of our own, with a trace of its own. */
function sweepContext(): CallContext {
  return { requestId: `sweep-${randomBytes(8).toString('hex')}`, traceparent: `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00` };
}
