/** POST /api/agent/auth: the agent key comes as Bearer, or as {agentKey} in the body. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { agents } from '../../../shared/contracts/agents.ts';
import { parseInput } from '../../../shared/rpc.ts';
import { contextOf } from '../context.ts';
import { readToken } from '../domain/credential.ts';
import { readInput, type MountOptions } from '../mount.ts';

/** The body of this endpoint alone: a key never goes into a contract's input, where it could be logged. */
const body = { ...agents.authenticateAgent, input: z.strictObject({ agentKey: z.string().max(256).optional() }) };

export const authenticate = ({ bus, baseUrl }: MountOptions) =>
  async function authenticate(request: FastifyRequest, reply: FastifyReply) {
    const { agentKey } = parseInput(body, readInput(request, body)) as { agentKey?: string };
    const context = contextOf(request, agents.authenticateAgent, baseUrl);
    const credential = context.credential ?? (agentKey === undefined ? undefined : readToken(agentKey));
    return reply.send(await bus.call(agents.authenticateAgent, {}, { ...context, ...(credential && { credential }) }));
  };
