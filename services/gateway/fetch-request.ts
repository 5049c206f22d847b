/** What a fetch brings: the share or the grant that lets it through, its passcode, its conditions. */
import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { shareId as shareIdSchema } from '../../shared/contracts/fields.ts';
import { fail, failField } from '../../shared/errors.ts';
import { contextOf, header } from './context.ts';
import type { Conditions } from './domain/conditions.ts';
import { checkGrantForm, readPasscode } from './domain/credential.ts';
import type { SpendingFetch } from './uses.ts';

/** A fetch asks nothing of the caller but the share or the grant. */
export const nobody = { accepts: [] } as const;
const fetchDeadlineMs = 5_000;

/**
 * Reads the fetch of a target.
 * @throws forbidden for a prefetch, invalid_request, share_not_found_or_expired, invalid_grant
 */
export function readFetch(request: FastifyRequest, targetId: string, baseUrl: string): SpendingFetch {
  // A browser that looks ahead would spend a use that nobody asked for.
  if (header(request, 'sec-purpose')?.includes('prefetch')) throw fail('forbidden', { detail: 'Prefetching a transfer is refused: a fetch may spend a use.' });
  const { share_id: shareId } = request.query as { share_id?: unknown };
  if (shareId !== undefined && typeof shareId !== 'string') throw failField('share_id', 'must be given once');
  if (shareId !== undefined && !shareIdSchema.safeParse(shareId).success) throw fail('share_not_found_or_expired');
  const grant = header(request, 'x-access-grant');
  if (grant !== undefined) checkGrantForm(grant);
  const passcode = header(request, 'x-share-passcode');
  const context = { ...contextOf(request, nobody, baseUrl), deadline: Date.now() + fetchDeadlineMs };
  return { targetId, fetchId: randomUUID(), shareId, grant, passcode: passcode === undefined ? undefined : readPasscode(passcode), context };
}

export function readConditions(request: FastifyRequest): Conditions {
  return {
    ifMatch: header(request, 'if-match'),
    ifNoneMatch: header(request, 'if-none-match'),
    ifModifiedSince: header(request, 'if-modified-since'),
    ifUnmodifiedSince: header(request, 'if-unmodified-since'),
    ifRange: header(request, 'if-range'),
    range: header(request, 'range'),
  };
}
