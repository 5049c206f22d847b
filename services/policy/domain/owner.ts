/** Whose things a request is about. */
import type { Caller } from '../../../shared/contract.ts';
import { fail } from '../../../shared/errors.ts';

/** @throws owner_auth_required for anybody but an owner */
export function ownerOf(caller: Caller): string {
  if (caller.type !== 'owner') throw fail('owner_auth_required');
  return caller.ownerId;
}
