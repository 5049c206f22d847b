/** The ticket that the gateway reads bytes by. */
import type { Segment } from '../../../shared/blobs/blobs.ts';
import type { ReadTicket } from '../../../shared/contracts/transfers.ts';

export function ticketToRead(segments: Segment[]): ReadTicket {
  return { driver: 'fs', segments };
}
