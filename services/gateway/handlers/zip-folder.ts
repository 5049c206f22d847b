/** GET /api/folder/{folderId}/zip, and GET and HEAD /api/dl/{id} of a folder: its ready files as one archive. Each archive spends one use or grant. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { attachedBytes, type AnswerOf } from '../../../shared/contract.ts';
import { transferId } from '../../../shared/contracts/fields.ts';
import { folders } from '../../../shared/contracts/folders.ts';
import { fail, Failure } from '../../../shared/errors.ts';
import type { CallContext } from '../../../shared/rpc.ts';
import { archiveSource } from '../archive-source.ts';
import { contextOf } from '../context.ts';
import { deliverSpent, setHeaders } from '../deliver.ts';
import { disposition } from '../domain/transfer-headers.ts';
import { layOut, type ZipLayout } from '../domain/zip.ts';
import { nobody, readFetch } from '../fetch-request.ts';
import { unknownParameter } from '../mount.ts';
import type { SpendingFetch, Spent } from '../uses.ts';
import type { FetchDeps } from './fetch-transfer.ts';

type Archive = AnswerOf<typeof folders.zipFolder> & { readonly [attachedBytes]?: Buffer };

export const zipFolder = (deps: FetchDeps) =>
  async function zipFolder(request: FastifyRequest, reply: FastifyReply) {
    const { folderId } = request.params as { folderId: string };
    if (!transferId.safeParse(folderId).success) throw fail('folder_not_found');
    const extra = Object.keys(request.query as object).find((name) => name !== 'share_id');
    if (extra !== undefined) throw unknownParameter(extra);
    const fetch = { ...readFetch(request, folderId, deps.baseUrl), ownShare: true };
    // Asked first: where nothing is ready nothing is spent.
    const archive = await openArchive(deps, folderId, fetch.context);
    const spent = await deps.uses.spend(fetch).catch((error: unknown) => {
      throw error instanceof Failure && error.code === 'transfer_not_found' ? fail('folder_not_found', {}, error) : error;
    });
    return sendArchive(deps, { reply, fetch, spent, archive });
  };

/** The archive of a folder, for a fetch that has spent by its id alone. What is not there is given back. */
export async function deliverArchive(deps: FetchDeps, { reply, fetch, spent }: { reply: FastifyReply; fetch: SpendingFetch; spent: Spent }): Promise<FastifyReply> {
  const archive = await openArchive(deps, fetch.targetId, fetch.context).catch(async (error: unknown) => {
    if (spent.spent) await deps.uses.giveBack(fetch);
    throw error;
  });
  return sendArchive(deps, { reply, fetch, spent, archive });
}

/** HEAD: the headers of the archive as it would be now. */
export async function headArchive({ bus, baseUrl }: FetchDeps, reply: FastifyReply, folderId: string): Promise<FastifyReply> {
  const archive = await bus.call(folders.zipFolder, { folderId }, contextOf(reply.request, nobody, baseUrl));
  reply.hijack();
  setHeaders(reply, { status: 200, headers: archiveHeaders(archive, layOut(archive)) });
  reply.raw.end();
  return reply;
}

async function openArchive({ bus }: FetchDeps, folderId: string, context: CallContext): Promise<Archive> {
  return bus.call(folders.zipFolder, { folderId }, context);
}

async function sendArchive(deps: FetchDeps, { reply, fetch, spent, archive }: { reply: FastifyReply; fetch: SpendingFetch; spent: Spent; archive: Archive }): Promise<FastifyReply> {
  const { bus, blobs } = deps;
  const { targetId: folderId, fetchId, context } = fetch;
  const layout = layOut(archive);
  const source = archiveSource({ bus, blobs, context, folderId, layout, places: archive[attachedBytes] ?? Buffer.alloc(0) });
  await deliverSpent(deps, { reply, fetch, spent, status: 200, headers: archiveHeaders(archive, layout) }, source);
  const { requestId, traceparent, address } = context;
  bus.call(folders.recordArchive, { folderId, fetchId, ...source.progress() }, { requestId, traceparent, ...(address && { address }) }).catch((error: unknown) => {
    deps.log.warn({ err: error, fetchId, requestId }, 'an archive could not be recorded');
  });
  return reply;
}

/** An archive has no validator and no ranges: the folder may have more files the next time. */
function archiveHeaders({ name }: Archive, { size }: ZipLayout): Record<string, string> {
  return {
    'Content-Type': 'application/zip',
    'Content-Disposition': disposition(/\.zip$/i.test(name) ? name : `${name}.zip`),
    'Content-Length': String(size),
    'Accept-Ranges': 'none',
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
  };
}
