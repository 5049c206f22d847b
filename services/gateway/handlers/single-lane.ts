/** PUT /api/lane/single/{planId}: the planned bytes in one request (interface chapter: Transfer plan and creation). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { allowedAgentIds, planId as planIdSchema } from '../../../shared/contracts/fields.ts';
import { planHeader } from '../../../shared/contracts/plans.ts';
import { uploads } from '../../../shared/contracts/uploads.ts';
import { fail, failField } from '../../../shared/errors.ts';
import { smallUpTo, storeLarge, type Lane, type LaneDeps } from '../../../shared/lane.ts';
import type { CallContext } from '../../../shared/rpc.ts';
import { contextOf, header } from '../context.ts';
import { acceptBody } from '../expect-continue.ts';
import { unknownParameter } from '../mount.ts';
import { contentDigest } from '../domain/transfer-headers.ts';
import { declaredLength, readBody } from '../request-body.ts';

/** What the routes of bytes need. */
export interface ByteDeps extends LaneDeps {
  readonly baseUrl: string;
}

export const singleLane = (deps: ByteDeps) =>
  async function singleLane(request: FastifyRequest, reply: FastifyReply) {
    const lane = readLane(request);
    const context = contextOf(request, { accepts: [] }, deps.baseUrl);
    const length = declaredLength(request);
    const send = length !== undefined && length <= smallUpTo ? sendSmall : sendLarge;
    const answer = await send(deps, { request, reply, lane, context });
    return reply.code(201).send(answer);
  };

interface Sending {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly lane: Lane;
  readonly context: CallContext;
}

async function sendSmall({ bus }: ByteDeps, { request, reply, lane, context }: Sending) {
  acceptBody(reply);
  const bytes = await readBody(request.raw, smallUpTo);
  const sha256 = contentDigest(header(request, 'content-digest') ?? '');
  return bus.call(uploads.storeSmall, { ...lane, ...(sha256 && { sha256 }) }, context, bytes);
}

async function sendLarge(deps: ByteDeps, { request, reply, lane, context }: Sending) {
  const sha256 = contentDigest(header(request, 'content-digest') ?? '');
  return storeLarge(deps, lane, { source: request.raw, size: declaredLength(request), sha256, onOpen: () => acceptBody(reply) }, context);
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
