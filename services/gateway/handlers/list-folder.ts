/** GET /api/folder/{folderId}: for its sender, whom storage knows; with share_id for a receiver, whom policy lets resolve the share. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { InputOf } from '../../../shared/contract.ts';
import { folders } from '../../../shared/contracts/folders.ts';
import { shares } from '../../../shared/contracts/shares.ts';
import { fail } from '../../../shared/errors.ts';
import { parseInput, type CallContext } from '../../../shared/rpc.ts';
import { contextOf } from '../context.ts';
import { readInput, type MountOptions } from '../mount.ts';

export const listFolder = (options: MountOptions) =>
  async function listFolder(request: FastifyRequest, reply: FastifyReply) {
    const { bus, baseUrl } = options;
    const { listFolder: contract } = folders;
    const { share_id: shareId, ...given } = readInput(request, contract) as Record<string, unknown>;
    const input = parseInput(contract, given) as InputOf<typeof contract>;
    const context = shareId === undefined ? contextOf(request, contract, baseUrl) : await resolve(options, request, { folderId: input.folderId, shareId });
    const answer = await bus.callRaw(contract, { ...input, resolved: shareId !== undefined }, context);
    return reply.type('application/json; charset=utf-8').send(answer.json);
  };

/** Has policy decide. Answers the context of what comes after: of nobody in particular. */
async function resolve({ bus, baseUrl }: MountOptions, request: FastifyRequest, { folderId, shareId }: { folderId: string; shareId: unknown }): Promise<CallContext> {
  const asked = parseInput(shares.resolveShare, { shareId }) as InputOf<typeof shares.resolveShare>;
  const context = contextOf(request, shares.resolveShare, baseUrl);
  const { targetId } = await bus.call(shares.resolveShare, asked, context);
  if (targetId !== folderId) throw fail('share_not_found_or_expired');
  return { ...context, credential: undefined };
}
