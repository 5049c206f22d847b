/** What a writer or reader of an object store asks storage while bytes move: the credentials are storage's alone. None of it is reached from outside. */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';

const key = z.string();
const size = z.int().min(0);
const partNumber = z.int().min(1).max(10_000);

export const blobs = defineContracts({
  touchBlob: {
    service: 'storage',
    summary: 'Say that a blob is still being written',
    accepts: [],
    input: z.strictObject({ key }),
    output: z.strictObject({ wanted: z.boolean().describe('False when it was given up meanwhile') }),
    errors: [],
  },
  signWrite: {
    service: 'storage',
    summary: 'Where so many bytes of a stream go: a part of it, or all of it when it is short',
    accepts: [],
    input: z.strictObject({ key, size, partNumber: partNumber.optional() }),
    output: z.strictObject({ url: z.string() }),
    errors: ['upload_expired'],
  },
  sealBlob: {
    service: 'storage',
    summary: 'Make the parts of a stream one object',
    accepts: [],
    input: z.strictObject({ key, parts: z.array(z.strictObject({ partNumber, size, etag: z.string() })).min(1).max(10_000) }),
    output: z.strictObject({}),
    errors: ['upload_expired', 'upload_state_conflict'],
    // The store answers when it has put the object together.
    deadlineMs: 60_000,
  },
  signRead: {
    service: 'storage',
    summary: 'Where an object is read',
    accepts: [],
    input: z.strictObject({ key }),
    output: z.strictObject({ url: z.string() }),
    errors: [],
  },
});
