/** GET and HEAD /api/dl/{id}: asks policy to spend and storage to open, then pipes. What delivers nothing spends nothing. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OpenBlob } from '../../../shared/blobs/blobs.ts';
import { attachedBytes, type AnswerOf } from '../../../shared/contract.ts';
import { shares } from '../../../shared/contracts/shares.ts';
import { transfers } from '../../../shared/contracts/transfers.ts';
import { fail } from '../../../shared/errors.ts';
import type { Bus } from '../../../shared/rpc.ts';
import { contextOf } from '../context.ts';
import { deliverSpent, setHeaders, type DeliverDeps } from '../deliver.ts';
import { evaluate, type ByteRange, type Conditions, type Verdict } from '../domain/conditions.ts';
import { etagOf, transferHeaders } from '../domain/transfer-headers.ts';
import { nobody, readConditions, readFetch } from '../fetch-request.ts';
import { livePipe, type LivePipeDeps } from '../live-pipe.ts';
import type { SpendingFetch, Spent } from '../uses.ts';
import { deliverArchive, headArchive } from './zip-folder.ts';

export interface FetchDeps extends DeliverDeps, LivePipeDeps {
  readonly bus: Bus;
  readonly baseUrl: string;
}

type Opened = AnswerOf<typeof transfers.openTransfer> & { readonly [attachedBytes]?: Buffer };

/** HEAD: the headers of a GET. It needs nothing and spends nothing. */
export const headTransfer = (deps: FetchDeps) =>
  async function headTransfer(request: FastifyRequest, reply: FastifyReply) {
    const { bus, baseUrl } = deps;
    const id = readId(request);
    const opened = await bus.call(transfers.openTransfer, { id, metadataOnly: true }, contextOf(request, nobody, baseUrl));
    if (opened.type === 'folder') return headArchive(deps, reply, id);
    const verdict = evaluate({ ...readConditions(request), range: undefined }, validatorsOf(id, opened));
    if (verdict.status === 412) throw fail('precondition_failed');
    reply.hijack();
    setHeaders(reply, { status: verdict.status, headers: headHeaders(id, opened) });
    reply.raw.end();
    return reply;
  };

export const fetchTransfer = (deps: FetchDeps) =>
  async function fetchTransfer(request: FastifyRequest, reply: FastifyReply) {
    const id = readId(request);
    const conditions = readConditions(request);
    const fetch = readFetch(request, id, deps.baseUrl);
    const ready = isOfFolder(id) ? await openFileThenSpend(deps, { id, fetch, conditions })
      : Object.values(conditions).every((value) => value === undefined) ? await spendAndOpen(deps, fetch)
      : await openThenSpend(deps, fetch, conditions);
    if (!ready.spent) return sendNotModified(reply, id, ready.opened);
    const delivery = { ...ready, reply, id, spent: ready.spent };
    return ready.opened.type === 'folder' ? deliverArchive(deps, delivery) : deliver(deps, delivery);
  };

/** A file of a folder is fetched by the folder's share or grant. */
const isOfFolder = (id: string) => id.startsWith('fil_');

interface Ready {
  /** Of the target whose share lets it through. */
  readonly fetch: SpendingFetch;
  readonly opened: Opened;
  readonly verdict: Verdict;
  /** Absent when the answer has no body and nothing was spent. */
  readonly spent: Spent | undefined;
}

/** The common case: both services are asked at once. */
async function spendAndOpen(deps: FetchDeps, fetch: SpendingFetch): Promise<Ready> {
  const [spending, opening] = await Promise.allSettled([deps.uses.spend(fetch), open(deps, fetch)]);
  if (spending.status === 'rejected') throw spending.reason;
  if (opening.status === 'rejected') {
    if (spending.value.spent) await deps.uses.giveBack(fetch);
    throw opening.reason;
  }
  return { fetch, opened: opening.value, spent: spending.value, verdict: { status: 200 } };
}

/** A conditional or range request may turn out to deliver nothing, so storage is asked first. */
async function openThenSpend(deps: FetchDeps, fetch: SpendingFetch, conditions: Conditions): Promise<Ready> {
  const opened = await open(deps, fetch).catch(async (error: unknown) => {
    // Policy knows better why there is nothing to fetch: an expired share, a grant that is missing.
    const { spent } = await deps.uses.spend(fetch);
    if (spent) await deps.uses.giveBack(fetch);
    throw error;
  });
  return spendIfDelivered(deps, { id: fetch.targetId, fetch, opened, conditions });
}

/** Which folder a file is in, storage knows: it is asked first. */
async function openFileThenSpend(deps: FetchDeps, { id, fetch: asked, conditions }: { id: string; fetch: SpendingFetch; conditions: Conditions }): Promise<Ready> {
  const opened = await open(deps, asked).catch(async (error: unknown) => {
    // Where the share has ended, that is why there is nothing.
    if (asked.shareId) await deps.bus.call(shares.describeShare, { shareId: asked.shareId }, asked.context);
    throw error;
  });
  if (!opened.folderId) throw fail('transfer_not_found');
  return spendIfDelivered(deps, { id, fetch: { ...asked, targetId: opened.folderId, fileId: id }, opened, conditions });
}

async function spendIfDelivered(deps: FetchDeps, { id, fetch, opened, conditions }: Pick<Ready, 'fetch' | 'opened'> & { id: string; conditions: Conditions }): Promise<Ready> {
  const verdict = judge(id, opened, conditions);
  if (verdict.status === 412) throw fail('precondition_failed');
  if (verdict.status === 416) throw fail('range_not_satisfiable', { size: opened.size });
  return { fetch, opened, verdict, spent: verdict.status === 304 ? undefined : await deps.uses.spend(fetch) };
}

/** An archive has no validators and no ranges, and of a live pipe nobody knows yet which bytes a range would be. */
function judge(id: string, opened: Opened, conditions: Conditions): Verdict {
  if (opened.type === 'folder') return { status: 200 };
  return evaluate(opened.live ? { ...conditions, range: undefined } : conditions, validatorsOf(id, opened));
}

async function open({ bus }: FetchDeps, { targetId: id, context }: SpendingFetch): Promise<Opened> {
  return bus.call(transfers.openTransfer, { id }, context);
}

/** Sends the file, or the range of it; of a pipe whose sender still writes, what is there and then what comes. */
async function deliver(deps: FetchDeps, { reply, id, fetch, opened, verdict, spent }: Ready & { reply: FastifyReply; id: string; spent: Spent }): Promise<FastifyReply> {
  if (opened.live) return deliverSpent(deps, { reply, fetch, spent, status: 200, headers: liveHeaders(id, opened) }, livePipe(deps, fetch, reply.raw));
  const range: ByteRange = verdict.status === 206 ? verdict.range : { start: 0, end: opened.size - 1 };
  let blob: OpenBlob | undefined;
  return deliverSpent(deps, { reply, fetch, spent, status: verdict.status, headers: deliveryHeaders(id, opened, range, verdict) }, {
    async open() { blob = opened.ticket && (await deps.blobs.open(opened.ticket)); },
    async send(raw) {
      if (blob && opened.size > 0) await blob.pipe({ start: range.start, end: range.end + 1 }, raw);
      raw.end(opened[attachedBytes]?.subarray(range.start, range.end + 1));
    },
    close: async () => blob?.close(),
  });
}

/** The size is known, and ranges can be served, once the last byte is there. */
function liveHeaders(id: string, opened: Opened): Record<string, string> {
  return { ...transferHeaders({ ...opened, id }), 'Accept-Ranges': 'none' };
}

function headHeaders(id: string, opened: Opened): Record<string, string> {
  return opened.live ? liveHeaders(id, opened) : { ...transferHeaders({ ...opened, id }), 'Content-Length': String(opened.size) };
}

function deliveryHeaders(id: string, opened: Opened, { start, end }: ByteRange, verdict: Verdict): Record<string, string> {
  return {
    ...transferHeaders({ ...opened, id }),
    'Content-Length': String(end - start + 1),
    ...(verdict.status === 206 && { 'Content-Range': `bytes ${start}-${end}/${opened.size}` }),
  };
}

function sendNotModified(reply: FastifyReply, id: string, opened: Opened): FastifyReply {
  reply.hijack();
  const { ETag, 'Last-Modified': modified } = transferHeaders({ ...opened, id });
  setHeaders(reply, { status: 304, headers: { ETag: ETag!, 'Last-Modified': modified! } });
  reply.raw.end();
  return reply;
}

function readId(request: FastifyRequest): string {
  const { id } = request.params as { id: string };
  if (!/^(trf|fil)_[A-Za-z0-9]{1,60}$/.test(id)) throw fail('transfer_not_found');
  return id;
}

function validatorsOf(id: string, opened: Opened) {
  return { etag: etagOf(id), lastModified: Date.parse(opened.createdAt), size: opened.size };
}
