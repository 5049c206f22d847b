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

/**
 * Opens a grant for one fetch. A forged, expired or foreign one is refused before anything is looked up or spent.
 * @throws invalid_grant
 */
export function openGrant(token: string, fetch: { targetId: string; shareId?: string | undefined; now: number }, keys: readonly Buffer[]): Grant {
  const opened = claims.safeParse(openToken('agrt', token, keys));
  if (!opened.success) throw fail('invalid_grant');
  const grant = opened.data;
  const fits = grant.targetId === fetch.targetId && (fetch.shareId === undefined || fetch.shareId === grant.shareId);
  if (!fits || grant.exp * 1_000 <= fetch.now) throw fail('invalid_grant');
  return grant;
}
