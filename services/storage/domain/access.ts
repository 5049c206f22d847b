/** Who may go on with an upload, and who may delete a transfer. */
import type { Caller } from '../../../shared/contract.ts';
import { fail } from '../../../shared/errors.ts';
import type { Creator } from './transfer.ts';

/** Whether a caller made something: the agent itself, or the owner as a person. */
function isCreator(caller: Caller, { ownerId, agentId }: Creator): boolean {
  if (agentId !== null) return caller.type === 'agent' && caller.agentId === agentId;
  return caller.type === 'owner' && caller.ownerId === ownerId;
}

/** Promise: an upload begun with a credential goes on with the same one; one begun by nobody in particular goes on for whoever knows its id. */
export function checkSender(caller: Caller, creator: Creator): void {
  if (creator.ownerId === null || isCreator(caller, creator)) return;
  if (caller.type !== 'anonymous') throw fail('forbidden');
  throw fail(creator.agentId === null ? 'owner_auth_required' : 'agent_auth_required');
}

/** Promise: without the delete token a transfer is deleted, and a pipe written, by its owner or by the agent that made it. */
export function mayDelete(caller: Caller, creator: Creator): boolean {
  if (caller.type === 'owner') return creator.ownerId === caller.ownerId;
  return caller.type === 'agent' && creator.agentId === caller.agentId;
}
