/** The commands that complete a file of a folder, and the poll of how far they are (interface chapter: Folders). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { InputOf } from '../../../shared/contract.ts';
import { folders } from '../../../shared/contracts/folders.ts';
import { parseInput } from '../../../shared/rpc.ts';
import { contextOf } from '../context.ts';
import { readInput, type MountOptions } from '../mount.ts';

/** Seconds after which asking makes sense; most commands are done by then. */
const again = '1';

export const completeFile = ({ bus, baseUrl }: MountOptions, contract: typeof folders.completeFile | typeof folders.completeDirectFile) =>
  async function completeFile(request: FastifyRequest, reply: FastifyReply) {
    const input = parseInput(contract, readInput(request, contract)) as InputOf<typeof folders.completeFile>;
    const accepted = await bus.call(contract, input, contextOf(request, contract, baseUrl));
    return reply.code(202).headers({ Location: accepted.statusUrl.slice(baseUrl.length), 'Retry-After': again }).send(accepted);
  };

export const readCompletion = ({ bus, baseUrl }: MountOptions) =>
  async function readCompletion(request: FastifyRequest, reply: FastifyReply) {
    const { readCompletion: contract } = folders;
    const input = parseInput(contract, readInput(request, contract)) as InputOf<typeof contract>;
    const completion = await bus.call(contract, input, contextOf(request, contract, baseUrl));
    if (!completion.done) void reply.header('Retry-After', again);
    return reply.send(completion);
  };
