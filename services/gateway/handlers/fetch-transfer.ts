/** GET and HEAD /api/dl/{id}: asks policy to spend and storage to open, then pipes. What delivers nothing spends nothing. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BlobReader, OpenBlob } from '../../../shared/blobs/blobs.ts';
import { attachedBytes, type AnswerOf } from '../../../shared/contract.ts';
import { transfers } from '../../../shared/contracts/transfers.ts';
import { shareId as shareIdSchema } from '../../../shared/contracts/fields.ts';
import { fail, failField } from '../../../shared/errors.ts';
import type { Logger } from '../../../shared/log.ts';
import type { Bus } from '../../../shared/rpc.ts';
import { contextOf, header } from '../context.ts';
import { checkGrantForm, readPasscode } from '../domain/credential.ts';
import { evaluate, type ByteRange, type Conditions, type Verdict } from '../domain/conditions.ts';
import { etagOf, transferHeaders } from '../domain/transfer-headers.ts';
import type { SpendingFetch, Spent, Uses } from '../uses.ts';

export interface FetchDeps {
  readonly bus: Bus;
  readonly uses: Uses;
  readonly blobs: BlobReader;
  readonly baseUrl: string;
  readonly log: Logger;
}

type Opened = AnswerOf<typeof transfers.openTransfer> & { readonly [attachedBytes]?: Buffer };

/** A fetch asks nothing of the caller but the share or the grant. */
const nobody = { accepts: [] } as const;
const fetchDeadlineMs = 5_000;

/** HEAD: the headers of a GET. It needs nothing and spends nothing. */
export const headTransfer = ({ bus, baseUrl }: FetchDeps) =>
  async function headTransfer(request: FastifyRequest, reply: FastifyReply) {
    const id = readId(request);
    const opened = await bus.call(transfers.openTransfer, { id, metadataOnly: true }, contextOf(request, nobody, baseUrl));
    const verdict = evaluate({ ...readConditions(request), range: undefined }, validatorsOf(id, opened));
    if (verdict.status === 412) throw fail('precondition_failed');
    reply.hijack();
    setHeaders(reply, { status: verdict.status, headers: { ...transferHeaders({ ...opened, id }), 'Content-Length': String(opened.size) } });
    reply.raw.end();
    return reply;
  };

export const fetchTransfer = (deps: FetchDeps) =>
  async function fetchTransfer(request: FastifyRequest, reply: FastifyReply) {
    // A browser that looks ahead would spend a use that nobody asked for.
    if (header(request, 'sec-purpose')?.includes('prefetch')) throw fail('forbidden', { detail: 'Prefetching a transfer is refused: a fetch may spend a use.' });
    const fetch = readFetch(request, deps.baseUrl);
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
  const verdict = evaluate(conditions, validatorsOf(fetch.targetId, opened));
  if (verdict.status === 412) throw fail('precondition_failed');
  if (verdict.status === 416) throw fail('range_not_satisfiable', { size: opened.size });
  if (verdict.status === 304) return { opened, verdict, spent: undefined };
  return { opened, verdict, spent: await deps.uses.spend(fetch) };
}

async function open({ bus }: FetchDeps, { targetId: id, context }: SpendingFetch): Promise<Opened> {
  return bus.call(transfers.openTransfer, { id }, context);
}

/** Sends the bytes. Headers go out with the first byte, so that a failure before it is still an error answer and gives the use back. */
async function deliver(deps: FetchDeps, reply: FastifyReply, fetch: SpendingFetch, ready: Ready & { spent: Spent }): Promise<FastifyReply> {
  const { opened, verdict, spent } = ready;
  const range: ByteRange = verdict.status === 206 ? verdict.range : { start: 0, end: opened.size - 1 };
  const { raw } = reply;
  let blob: OpenBlob | undefined;
  try {
    blob = opened.ticket && (await deps.blobs.open(opened.ticket));
    if (raw.destroyed) throw fail('service_unavailable');
    setHeaders(reply, { status: verdict.status, headers: deliveryHeaders(fetch.targetId, opened, range, verdict, spent) });
    if (blob && opened.size > 0) await blob.pipe({ start: range.start, end: range.end + 1 }, raw);
    raw.end(opened[attachedBytes]?.subarray(range.start, range.end + 1));
    reply.hijack();
  } catch (error) {
    if (!raw.headersSent) {
      for (const name of raw.getHeaderNames()) raw.removeHeader(name);
      if (spent.spent) await deps.uses.giveBack(fetch);
      throw error;
    }
    reply.hijack();
    // The client must not take a part for the whole.
    raw.destroy();
    deps.log.info({ requestId: fetch.context.requestId, err: error }, 'a fetch ended early');
  } finally {
    await blob?.close();
  }
  return reply;
}

function deliveryHeaders(id: string, opened: Opened, { start, end }: ByteRange, verdict: Verdict, spent: Spent): Record<string, string> {
  return {
    ...transferHeaders({ ...opened, id }),
    'Content-Length': String(end - start + 1),
    ...(verdict.status === 206 && { 'Content-Range': `bytes ${start}-${end}/${opened.size}` }),
    ...(spent.remainingUses !== undefined && { 'X-Remaining-Uses': String(spent.remainingUses) }),
  };
}

function sendNotModified(reply: FastifyReply, { targetId: id }: SpendingFetch, opened: Opened): FastifyReply {
  reply.hijack();
  const { ETag, 'Last-Modified': modified } = transferHeaders({ ...opened, id });
  setHeaders(reply, { status: 304, headers: { ETag: ETag!, 'Last-Modified': modified! } });
  reply.raw.end();
  return reply;
}

/** Puts the headers on the raw response, with those that every response has. */
function setHeaders(reply: FastifyReply, { status, headers }: { status: number; headers: Record<string, string> }): void {
  reply.raw.statusCode = status;
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value);
  }
  for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
}

function readId(request: FastifyRequest): string {
  const { id } = request.params as { id: string };
  if (!/^trf_[A-Za-z0-9]{1,60}$/.test(id)) throw fail('transfer_not_found');
  return id;
}

function readFetch(request: FastifyRequest, baseUrl: string): SpendingFetch {
  const { share_id: shareId } = request.query as { share_id?: unknown };
  if (shareId !== undefined && typeof shareId !== 'string') throw failField('share_id', 'must be given once');
  if (shareId !== undefined && !shareIdSchema.safeParse(shareId).success) throw fail('share_not_found_or_expired');
  const grant = header(request, 'x-access-grant');
  if (grant !== undefined) checkGrantForm(grant);
  const passcode = header(request, 'x-share-passcode');
  const context = { ...contextOf(request, nobody, baseUrl), deadline: Date.now() + fetchDeadlineMs };
  return { targetId: readId(request), fetchId: randomUUID(), shareId, grant, passcode: passcode === undefined ? undefined : readPasscode(passcode), context };
}

function readConditions(request: FastifyRequest): Conditions {
  return {
    ifMatch: header(request, 'if-match'),
    ifNoneMatch: header(request, 'if-none-match'),
    ifModifiedSince: header(request, 'if-modified-since'),
    ifUnmodifiedSince: header(request, 'if-unmodified-since'),
    ifRange: header(request, 'if-range'),
    range: header(request, 'range'),
  };
}

function validatorsOf(id: string, opened: Opened) {
  return { etag: etagOf(id), lastModified: Date.parse(opened.createdAt), size: opened.size };
}
