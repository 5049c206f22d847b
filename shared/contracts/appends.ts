/** Append uploads: bytes that come in order, in pieces, by one writer at a time. Pipes and resumable uploads are made of them; no address is theirs alone. */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import { writeTicket, written } from './uploads.ts';

/** The id of whatever the bytes belong to: a pipe, or an upload. */
const appendId = z.string().max(64);

/** What a writer holds: the right to append, and where the next piece goes. The handler that checked the writer hands it out. */
export const appendLease = z.strictObject({
  id: appendId,
  lease: z.string(),
  /** Bytes that are stored so far. */
  offset: z.int().min(0),
  /** Bytes that there may be in all. */
  maxBytes: z.int().min(0),
  /** Seconds without a word from the writer after which another may take over. */
  seconds: z.int(),
  /** Whether neighbouring pieces cost no more than one; otherwise there should be few. */
  merges: z.boolean(),
  ticket: writeTicket,
});
export type AppendLease = z.output<typeof appendLease>;

const held = { id: appendId, lease: z.string() };

export const appends = defineContracts({
  recordPiece: {
    service: 'storage',
    summary: 'Record a written piece at the end of what is stored; the same again answers the same',
    accepts: [],
    input: z.strictObject({ ...held, offset: z.int().min(0).describe('Where in the whole the piece begins'), key: z.string(), written }),
    output: z.strictObject({ offset: z.int(), ticket: writeTicket.describe('For the piece after this one') }),
    errors: ['upload_state_conflict'],
  },
  keepLease: {
    service: 'storage',
    summary: 'Say that the writer is still there, and learn whether it still may write',
    accepts: [],
    input: z.strictObject(held),
    output: z.strictObject({ offset: z.int() }),
    errors: ['upload_state_conflict'],
  },
  releaseLease: {
    service: 'storage',
    summary: 'Stop to write, so that another writer may go on at once',
    accepts: [],
    input: z.strictObject(held),
    output: z.strictObject({ released: z.boolean() }),
    errors: [],
  },
});
