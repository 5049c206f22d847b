/** A grant as its token states it, and when it is good for a fetch (interface chapter: Grant response). */
import { z } from 'zod';
import { fail } from '../../../shared/errors.ts';
import { openToken, sealToken } from '../../../shared/tokens.ts';

const claims = z.strictObject({
  grantId: z.string(),
  shareId: z.string(),
  targetId: z.string(),
  agentId: z.string(),
  /** Seconds since 1970. */
  exp: z.int(),
});
export type Grant = z.output<typeof claims>;

export function sealGrant(grant: Grant, keys: readonly Buffer[]): string {
  return sealToken('agrt', grant, keys);
}

/** Opens a grant's token; a forged one is refused before anything is looked up. */
export function openGrant(token: string, keys: readonly Buffer[]): Grant {
  const opened = claims.safeParse(openToken('agrt', token, keys));
  if (!opened.success) throw fail('invalid_grant');
  return opened.data;
}

/** Whether a grant is good for this fetch: of this target and share, and not past its expiry. `now` in milliseconds since 1970. */
export function fitsFetch(grant: Grant, fetch: { targetId: string; shareId?: string | undefined; now: number }): boolean {
  const isSameTarget = grant.targetId === fetch.targetId && (fetch.shareId === undefined || fetch.shareId === grant.shareId);
  return isSameTarget && grant.exp * 1_000 > fetch.now;
}
