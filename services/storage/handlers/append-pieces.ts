/** The writer's side of an append upload: it takes the lease, records piece after piece, says that it is there, and stops. */
import type { Handler } from '../../../shared/contract.ts';
import type { AppendLease, appends } from '../../../shared/contracts/appends.ts';
import type { WriteTicket } from '../../../shared/contracts/uploads.ts';
import type { Failure } from '../../../shared/errors.ts';
import { randomText } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { isRecorded, refusalOf, type Append } from '../domain/append.ts';

/**
 * Makes the caller, whom the handler has checked, the writer of an append upload.
 * @throws upload_state_conflict when there is another or the upload has ended, upload_offset_mismatch when something else than `offset` is stored
 */
export async function takeLease({ store, blobs, limits }: Deps, wanted: { id: string; offset?: number; once?: boolean; takesOver?: boolean }): Promise<AppendLease> {
  const lease = randomText();
  const times = { seconds: limits.appendLease, checkAfter: limits.blobIdle };
  const append = await store.takeLease({ ...wanted, ...times, lease, spareKey: randomText(), sameFile: blobs.growsInPlace });
  if (!append) throw await whyNot(store, wanted);
  const { id, received: offset, maxBytes } = append;
  return { id, lease, offset, maxBytes, seconds: limits.appendLease, merges: blobs.growsInPlace, ticket: await ticketFor(blobs, append) };
}

/** To one who takes over it does not matter who else is writing. */
async function whyNot(store: Deps['store'], { id, offset, takesOver }: { id: string; offset?: number; takesOver?: boolean }): Promise<Failure> {
  const append = await store.findAppend(id);
  return refusalOf(append, { offset, ...(takesOver && append?.lease && { lease: append.lease }) });
}

/** Where the next piece goes. */
function ticketFor(blobs: Deps['blobs'], { key, keyStart, received, maxBytes }: Append): Promise<WriteTicket> {
  return blobs.ticketToWrite({ key: key!, offset: received - keyStart!, maxBytes: maxBytes - received });
}

export const recordPiece = ({ store, blobs, limits, wakePipe }: Deps): Handler<typeof appends.recordPiece> =>
  async function recordPiece({ id, lease, offset, key, written }) {
    const piece = { id, lease, offset, key, size: written.size };
    const next = { key: blobs.growsInPlace ? null : randomText(), seconds: limits.appendLease, checkAfter: limits.blobIdle };
    const recorded = await store.recordPiece(piece, next);
    if (recorded) wakePipe(id);
    const append = recorded ?? (await store.findAppend(id));
    if (!isRecorded(append, piece)) throw refusalOf(append, piece);
    return { offset: append.received, ticket: await ticketFor(blobs, append) };
  };

export const keepLease = ({ store, limits }: Deps): Handler<typeof appends.keepLease> =>
  async function keepLease({ id, lease }) {
    const append = await store.keepLease(id, lease, limits.appendLease);
    if (!append) throw refusalOf(await store.findAppend(id), { lease });
    return { offset: append.received };
  };

export const releaseLease = ({ store }: Deps): Handler<typeof appends.releaseLease> =>
  async function releaseLease({ id, lease }) {
    return { released: await store.releaseLease(id, lease) };
  };
