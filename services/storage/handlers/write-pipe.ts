/** PUT /api/pipe/{pipeId}: its sender becomes the writer, and in the end the pipe has its last byte, or it fails and takes its fetches along. */
import type { Handler, RequestContext } from '../../../shared/contract.ts';
import type { pipeEnds, pipes } from '../../../shared/contracts/pipes.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOfService } from '../../../shared/events.ts';
import type { CallContext } from '../../../shared/rpc.ts';
import type { Deps } from '../deps.ts';
import { pipeEvent, transferStored } from '../domain/sender-event.ts';
import { takeLease } from './append-pieces.ts';
import { endShare } from './delete-transfer.ts';
import { ownContext } from './release-transfer.ts';
import { sentTransfer } from './sent-transfer.ts';

export const openPipe = (deps: Deps): Handler<typeof pipes.openPipe> =>
  async function openPipe({ pipeId, deleteToken, size }, context) {
    const pipe = await sentTransfer(deps, { id: pipeId, deleteToken }, context);
    if (pipe.kind !== 'pipe') throw fail('transfer_not_found');
    if (pipe.expiresAt.getTime() <= deps.clock()) throw fail('upload_expired');
    const append = await deps.store.findAppend(pipeId);
    if (append && size !== undefined && size > append.maxBytes) throw fail('payload_too_large', { detail: `The pipe takes ${append.maxBytes} bytes.` });
    return takeLease(deps, { id: pipeId, once: true });
  };

export const completePipe = (deps: Deps): Handler<typeof pipes.completePipe> =>
  async function completePipe({ pipeId, lease, size, sha256 }, context) {
    const { store, clock, wakePipe } = deps;
    const found = await store.findTransfer(pipeId);
    if (!found) throw fail('transfer_not_found');
    // Kept from the plan until the bytes are there.
    if (!found.segments && found.sha256 && found.sha256 !== sha256) throw await failed(deps, pipeId, lease, context);
    const pipe = { ...found, size, sha256 };
    const occasion = { context, now: clock() };
    const completed = await store.completePipe({ id: pipeId, lease, size, sha256 }, [pipeEvent(occasion, 'upload.completed', pipe, { size }), transferStored(occasion, pipe)]);
    wakePipe(pipeId);
    if (!completed) await checkCompleted(deps, { id: pipeId, size, sha256 });
    return { pipeId, size, sha256 };
  };

async function failed(deps: Deps, id: string, lease: string, context: RequestContext) {
  await failPipe(deps, { id, lease, reason: 'digest_mismatch' }, ownContext(context));
  return fail('digest_mismatch');
}

/** Nothing was changed: good when this request had done it before. */
async function checkCompleted({ store }: Deps, { id, size, sha256 }: { id: string; size: number; sha256: string }): Promise<void> {
  const pipe = await store.findTransfer(id);
  if (!pipe?.segments || pipe.endedAt || pipe.size !== size || pipe.sha256 !== sha256) throw fail('upload_state_conflict', { detail: 'The pipe has ended.' });
}

export const abortPipe = (deps: Deps): Handler<typeof pipes.abortPipe> =>
  async function abortPipe({ pipeId: id, lease, reason }, context) {
    return { aborted: await failPipe(deps, { id, lease, reason }, ownContext(context)) };
  };

interface End {
  readonly id: string;
  /** The writer's; absent when it is taken for gone. */
  readonly lease?: string;
  readonly reason: (typeof pipeEnds)[number];
}

/** Ends a pipe without its last byte: its fetches break off, and its share ends. Answers whether this call did it. */
export async function failPipe(deps: Deps, { id, lease, reason }: End, context: CallContext): Promise<boolean> {
  const { store, clock, wakePipe } = deps;
  const event = eventOfService('storage', clock(), { eventType: 'upload.aborted', targetType: 'pipe', targetId: id, outcome: 'error', data: { lane: 'pipe', reason } });
  const ended = await store.failPipe(id, lease ?? null, event);
  if (!ended) return false;
  wakePipe(id);
  await endShare(deps, id, context).catch(() => undefined);
  return true;
}
