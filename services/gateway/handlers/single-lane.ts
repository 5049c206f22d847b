/** PUT /api/lane/single/{planId}: the planned bytes in one request (interface chapter: Transfer plan and creation). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BlobWriter } from '../../../shared/blobs/blobs.ts';
import { allowedAgentIds, planId as planIdSchema } from '../../../shared/contracts/fields.ts';
import { planHeader } from '../../../shared/contracts/plans.ts';
import { uploads } from '../../../shared/contracts/uploads.ts';
import { fail, failField, Failure } from '../../../shared/errors.ts';
import type { Bus, CallContext } from '../../../shared/rpc.ts';
import { contextOf, header, soon } from '../context.ts';
import { acceptBody } from '../expect-continue.ts';
import { unknownParameter } from '../mount.ts';
import { contentDigest } from '../domain/transfer-headers.ts';
import { declaredLength, readBody } from '../request-body.ts';

export interface LaneDeps {
  readonly bus: Bus;
  readonly blobs: BlobWriter;
  readonly baseUrl: string;
}

/** Assets up to this size ride with the request and are stored in the row. */
export const smallUpTo = 32 * 1024;

interface Lane {
  readonly planId: string;
  readonly plan: string;
  readonly narrowing: { ttl?: number; maxUses?: number; allowedAgentIds?: string[] };
}

export const singleLane = (deps: LaneDeps) =>
  async function singleLane(request: FastifyRequest, reply: FastifyReply) {
    const lane = readLane(request);
    const context = contextOf(request, { accepts: [] }, deps.baseUrl);
    const length = declaredLength(request);
    const store = length !== undefined && length <= smallUpTo ? storeSmall : storeLarge;
    const answer = await store(deps, { request, reply, lane, context });
    return reply.code(201).send(answer);
  };

interface Sending {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly lane: Lane;
  readonly context: CallContext;
}

async function storeSmall({ bus }: LaneDeps, { request, reply, lane, context }: Sending) {
  acceptBody(reply);
  const bytes = await readBody(request.raw, smallUpTo);
  const sha256 = contentDigest(header(request, 'content-digest') ?? '');
  return bus.call(uploads.storeSmall, { ...lane, ...(sha256 && { sha256 }) }, context, bytes);
}

async function storeLarge({ bus, blobs }: LaneDeps, { request, reply, lane, context }: Sending) {
  const digest = contentDigest(header(request, 'content-digest') ?? '');
  const size = declaredLength(request);
  const { ticket, sha256Wanted } = await bus.call(uploads.openSingle, { ...lane, ...(size !== undefined && { size }) }, soon(context));
  acceptBody(reply);
  try {
    const written = await blobs.write(ticket, request.raw, { maxBytes: ticket.maxBytes, sha256: sha256Wanted || digest !== undefined })
      .catch(async (error: unknown) => {
        // Announced or not, too many bytes have one answer: storage says whether they widen the plan or are too many for any.
        if (error instanceof Failure && error.code === 'payload_too_large') await bus.call(uploads.openSingle, { ...lane, size: ticket.maxBytes + 1 }, context);
        throw error;
      });
    if (digest !== undefined && digest !== written.sha256) throw fail('digest_mismatch');
    return await bus.call(uploads.finishSingle, { ...lane, key: ticket.key, written }, soon(context));
  } catch (error) {
    abandon(bus, ticket.key, context);
    throw error;
  }
}

/** Tells storage that bytes will not be finished. Best effort: the sweeper finds them otherwise. A blob that was finished after all is kept. */
export function abandon(bus: Bus, key: string, { requestId, traceparent }: CallContext): void {
  bus.call(uploads.abandonBlob, { key }, { requestId, traceparent }).catch(() => undefined);
}

function readLane(request: FastifyRequest): Lane {
  const { planId } = request.params as { planId: string };
  const plan = header(request, planHeader.toLowerCase());
  if (!plan) throw fail('plan_required');
  if (!planIdSchema.safeParse(planId).success) throw fail('plan_mismatch');
  return { planId, plan, narrowing: readNarrowing(request.query as Record<string, unknown>) };
}

/** The query may narrow the plan: ttl, maxUses, allowedAgentIds (separated by commas). */
function readNarrowing({ ttl, maxUses, allowedAgentIds: agents, ...unknown }: Record<string, unknown>): Lane['narrowing'] {
  const [extra] = Object.keys(unknown);
  if (extra !== undefined) throw unknownParameter(extra);
  return {
    ...(ttl !== undefined && { ttl: readNumber('ttl', ttl, 30) }),
    ...(maxUses !== undefined && { maxUses: readNumber('maxUses', maxUses, 1) }),
    ...(agents !== undefined && { allowedAgentIds: readAgents(agents) }),
  };
}

function readNumber(field: string, value: unknown, min: number): number {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : NaN;
  if (!(number >= min)) throw failField(field, `must be a whole number of at least ${min}`);
  return number;
}

function readAgents(value: unknown): string[] {
  const parsed = allowedAgentIds.safeParse(typeof value === 'string' ? value.split(',') : value);
  if (!parsed.success) throw failField('allowedAgentIds', 'must be at most 100 agent ids separated by commas');
  return parsed.data;
}
