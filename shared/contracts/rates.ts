/** How many requests callers send, counted for all gateways together (interface chapter: Rate limits). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';

const count = z.int().min(0).max(2_000_000_000);

export const rates = defineContracts({
  leaseRequests: {
    service: 'policy',
    summary: 'Take a part of what a caller may send in its present window',
    accepts: [],
    input: z.strictObject({
      bucket: z.string().min(1).max(256),
      limit: count.min(1),
      window: z.int().min(1).max(86_400).describe('Seconds'),
      wanted: count.min(1),
    }),
    output: z.strictObject({
      granted: count.describe('At most what was wanted; 0 when nothing is left'),
      left: count.describe('What may still be leased in this window'),
      endsInMs: count.describe('Until the window, and the lease with it, ends'),
      waitMs: count.describe('Until something can be leased again; 0 when something is left'),
    }),
    errors: [],
    // Nobody is kept waiting for a count: without an answer the gateway counts by itself.
    deadlineMs: 2_000,
  },
});
