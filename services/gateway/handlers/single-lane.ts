/** PUT /api/lane/single/{planId}: the planned bytes in one request (interface chapter: Transfer plan and creation). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { allowedAgentIds, planId as planIdSchema } from '../../../shared/contracts/fields.ts';
import { planHeader } from '../../../shared/contracts/plans.ts';
import { fail, failField } from '../../../shared/errors.ts';
import { contextOf, header } from '../context.ts';
import { acceptBody } from '../expect-continue.ts';
import { unknownParameter } from '../mount.ts';
import { contentDigest } from '../domain/transfer-headers.ts';
import { declaredLength, readBody } from '../request-body.ts';
import { smallUpTo, storeLarge, storeSmall, type Lane, type LaneDeps } from './store-bytes.ts';

export const singleLane = (deps: LaneDeps) =>
  async function singleLane(request: FastifyRequest, reply: FastifyReply) {
    const sending = { lane: readLane(request), context: contextOf(request, { accepts: [] }, deps.baseUrl), sha256: contentDigest(header(request, 'content-digest') ?? '') };
    const size = declaredLength(request);
    const answer = await (size !== undefined && size <= smallUpTo
      ? readSmall(request, reply).then((bytes) => storeSmall(deps, sending, bytes))
      : storeLarge(deps, sending, { source: request.raw, size, accepted: () => acceptBody(reply) }));
    return reply.code(201).send(answer);
  };

async function readSmall(request: FastifyRequest, reply: FastifyReply): Promise<Buffer> {
  acceptBody(reply);
  return readBody(request.raw, smallUpTo);
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
