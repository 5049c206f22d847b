/** GET and HEAD /api/dl/{id}: asks policy to spend and storage to open, then pipes. What delivers nothing spends nothing. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OpenBlob } from '../../../shared/blobs/blobs.ts';
import { attachedBytes, type AnswerOf } from '../../../shared/contract.ts';
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

export interface FetchDeps extends DeliverDeps, LivePipeDeps {
  readonly bus: Bus;
  readonly baseUrl: string;
}

type Opened = AnswerOf<typeof transfers.openTransfer> & { readonly [attachedBytes]?: Buffer };

/** HEAD: the headers of a GET. It needs nothing and spends nothing. */
export const headTransfer = ({ bus, baseUrl }: FetchDeps) =>
  async function headTransfer(request: FastifyRequest, reply: FastifyReply) {
    const id = readId(request);
    const opened = await bus.call(transfers.openTransfer, { id, metadataOnly: true }, contextOf(request, nobody, baseUrl));
    const verdict = evaluate({ ...readConditions(request), range: undefined }, validatorsOf(id, opened));
    if (verdict.status === 412) throw fail('precondition_failed');
    reply.hijack();
    setHeaders(reply, { status: verdict.status, headers: headHeaders(id, opened) });
    reply.raw.end();
    return reply;
  };

export const fetchTransfer = (deps: FetchDeps) =>
  async function fetchTransfer(request: FastifyRequest, reply: FastifyReply) {
    const fetch = readFetch(request, readId(request), deps.baseUrl);
    const conditions = readConditions(request);
    const isPlain = Object.values(conditions).every((value) => value === undefined);
    const ready = isPlain ? await spendAndOpen(deps, fetch) : await openThenSpend(deps, fetch, conditions);
    if (!ready.spent) return sendNotModified(reply, fetch, ready.opened);
    return deliver(deps, reply, fetch, { ...ready, spent: ready.spent });
  };

interface Ready {
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
  return { opened: opening.value, spent: spending.value, verdict: { status: 200 } };
}

/** A conditional or range request may turn out to deliver nothing, so storage is asked first. */
async function openThenSpend(deps: FetchDeps, fetch: SpendingFetch, conditions: Conditions): Promise<Ready> {
  const opened = await open(deps, fetch).catch(async (error: unknown) => {
    // Policy knows better why there is nothing to fetch: an expired share, a grant that is missing.
    const { spent } = await deps.uses.spend(fetch);
    if (spent) await deps.uses.giveBack(fetch);
    throw error;
  });
  // Nobody knows yet which bytes a range of a live pipe would be.
  const verdict = evaluate(opened.live ? { ...conditions, range: undefined } : conditions, validatorsOf(fetch.targetId, opened));
  if (verdict.status === 412) throw fail('precondition_failed');
  if (verdict.status === 416) throw fail('range_not_satisfiable', { size: opened.size });
  if (verdict.status === 304) return { opened, verdict, spent: undefined };
  return { opened, verdict, spent: await deps.uses.spend(fetch) };
}

async function open({ bus }: FetchDeps, { targetId: id, context }: SpendingFetch): Promise<Opened> {
  return bus.call(transfers.openTransfer, { id }, context);
}

/** Sends the file, or the range of it; of a pipe whose sender still writes, what is there and then what comes. */
async function deliver(deps: FetchDeps, reply: FastifyReply, fetch: SpendingFetch, ready: Ready & { spent: Spent }): Promise<FastifyReply> {
  const { opened, verdict, spent } = ready;
  if (opened.live) return deliverSpent(deps, { reply, fetch, spent, status: 200, headers: liveHeaders(fetch.targetId, opened) }, livePipe(deps, fetch, reply.raw));
  const range: ByteRange = verdict.status === 206 ? verdict.range : { start: 0, end: opened.size - 1 };
  let blob: OpenBlob | undefined;
  return deliverSpent(deps, { reply, fetch, spent, status: verdict.status, headers: deliveryHeaders(fetch.targetId, opened, range, verdict) }, {
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

function sendNotModified(reply: FastifyReply, { targetId: id }: SpendingFetch, opened: Opened): FastifyReply {
  reply.hijack();
  const { ETag, 'Last-Modified': modified } = transferHeaders({ ...opened, id });
  setHeaders(reply, { status: 304, headers: { ETag: ETag!, 'Last-Modified': modified! } });
  reply.raw.end();
  return reply;
}

function readId(request: FastifyRequest): string {
  const { id } = request.params as { id: string };
  if (!/^trf_[A-Za-z0-9]{1,60}$/.test(id)) throw fail('transfer_not_found');
  return id;
}

function validatorsOf(id: string, opened: Opened) {
  return { etag: etagOf(id), lastModified: Date.parse(opened.createdAt), size: opened.size };
}
