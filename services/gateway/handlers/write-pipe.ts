/** PUT /api/pipe/{pipeId}: the bytes of a pipe, for as long as its sender writes them (interface chapter: Pipes). */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { InputOf } from '../../../shared/contract.ts';
import { pipes, type pipeEnds } from '../../../shared/contracts/pipes.ts';
import { fail, Failure, type ErrorCode } from '../../../shared/errors.ts';
import { soon } from '../../../shared/lane.ts';
import { parseInput, type CallContext } from '../../../shared/rpc.ts';
import { appendStream, type AppendDeps } from '../append-stream.ts';
import { contextOf, header } from '../context.ts';
import { contentDigest } from '../domain/transfer-headers.ts';
import { acceptBody } from '../expect-continue.ts';
import { insist } from '../insist.ts';
import { unknownParameter } from '../mount.ts';
import { declaredLength } from '../request-body.ts';

export interface WritePipeDeps extends AppendDeps {
  readonly baseUrl: string;
  /** Milliseconds without a byte after which a sender is given up. */
  readonly pipeIdleMs: number;
}

type End = (typeof pipeEnds)[number];

/** Soon enough for whoever reads along, and late enough for the chunks of one write to come together. */
const quietMs = 20;

export const writePipe = (deps: WritePipeDeps) =>
  async function writePipe(request: FastifyRequest, reply: FastifyReply) {
    const { bus, baseUrl, pipeIdleMs: idleMs } = deps;
    const context = contextOf(request, { ...pipes.openPipe, http: pipes.completePipe.http }, baseUrl);
    const promised = contentDigest(header(request, 'content-digest') ?? '');
    const input = readInput(request);
    const lease = await bus.call(pipes.openPipe, input, soon(context));
    acceptBody(reply);
    const writer = { pipeId: input.pipeId, lease: lease.lease };
    const hash = createHash('sha256');
    try {
      const size = await appendStream(deps, lease, request.raw, { context, quietMs, idleMs, hash });
      const sha256 = hash.digest('hex');
      if (promised !== undefined && promised !== sha256) throw fail('digest_mismatch');
      return reply.code(200).send(await insist(() => bus.call(pipes.completePipe, { ...writer, size, sha256 }, soon(context)), lease.seconds));
    } catch (error) {
      await abort(bus, { ...writer, reason: reasonOf(error, request) }, context);
      throw error;
    }
  };

function readInput(request: FastifyRequest): InputOf<typeof pipes.openPipe> {
  const [extra] = Object.keys(request.query as object);
  if (extra !== undefined) throw unknownParameter(extra);
  const { pipeId } = request.params as { pipeId: string };
  return parseInput(pipes.openPipe, { pipeId, deleteToken: header(request, 'x-delete-token'), size: declaredLength(request) }) as InputOf<typeof pipes.openPipe>;
}

const reasons: Partial<Record<ErrorCode, End>> = { payload_too_large: 'too_large', digest_mismatch: 'digest_mismatch', deadline_exceeded: 'sender_idle' };

function reasonOf(error: unknown, { raw }: FastifyRequest): End {
  const known = error instanceof Failure ? reasons[error.code] : undefined;
  return known ?? (raw.destroyed ? 'sender_lost' : 'interrupted');
}

/** Ends the pipe at once. When nobody hears it, the pipe ends with the lease. */
async function abort(bus: AppendDeps['bus'], end: InputOf<typeof pipes.abortPipe>, { requestId, traceparent }: CallContext): Promise<void> {
  await bus.call(pipes.abortPipe, end, { requestId, traceparent }).catch(() => undefined);
}
