/** POST /api/folder: an empty folder with its share (interface chapter: Folders). */
import type { Handler, HandlerContext, InputOf } from '../../../shared/contract.ts';
import type { folders } from '../../../shared/contracts/folders.ts';
import { plans, type PlanClaims } from '../../../shared/contracts/plans.ts';
import { fail } from '../../../shared/errors.ts';
import { ownContext } from '../../../shared/rpc.ts';
import type { Deps } from '../deps.ts';
import { folderCreated } from '../domain/sender-event.ts';
import type { NewTransfer } from '../domain/transfer.ts';
import { readCreation } from './planned-creation.ts';
import { readPlan } from './read-plan.ts';
import { releaseTransfer } from './release-transfer.ts';

type Input = InputOf<typeof folders.createFolder>;

/** What a folder is fetched as. */
const mimeType = 'application/zip';

export const createFolder = (deps: Deps): Handler<typeof folders.createFolder> =>
  async function createFolder(input, context) {
    const { store, clock, baseUrl } = deps;
    // A key that came with another request is refused here, whatever that request was for.
    await readCreation(deps, 'createFolder', input, context);
    const claims = await planFor(deps, input, context);
    const folder = folderOf(claims);
    const { partSize, maxParallelParts } = claims.geometry;
    const stored = await store.createFolder(folder, { partSize, maxParallelParts, maxFileBytes: claims.maxBytes }, folderCreated({ context, now: clock() }, folder));
    const made = stored ?? (await store.findTransferOfPlan(claims.planId));
    if (!made) throw fail('plan_already_used');
    const answer = await releaseTransfer(deps, made, context);
    return { ...answer, folderId: answer.id, zipUrl: `${baseUrl}/api/folder/${answer.id}/zip?share_id=${answer.shareId}` };
  };

/** The plan fixes ids, creator and release; the same operation has the same plan, and so the same folder. */
async function planFor({ bus, keys }: Deps, { name, ...policy }: Input, context: HandlerContext): Promise<PlanClaims> {
  const { credential, operationId } = context;
  const { plan } = await bus.call(plans.planTransfer, { filename: name, mimeType, ...policy }, { ...ownContext(context), ...(credential && { credential }), ...(operationId && { operationId }) });
  return readPlan(keys.plan, plan);
}

function folderOf({ transferId: id, shareId, planId, creator, filename, release }: PlanClaims): NewTransfer {
  return { id, shareId, planId, ...creator, kind: 'folder', lane: 'folder', filename, mimeType, size: 0, crc32: null, sha256: null, release };
}
