/** Imports: the exchange fetches a URL itself (interface chapter: Transfer plan and creation). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';
import { transferFields } from './plans.ts';

/** Milliseconds that an import may take: the fetch, and then the finish. */
export const importMs = { fetch: 120_000, finish: 15_000 } as const;

export const imports = defineContracts({
  importUrl: {
    service: 'importer',
    summary: 'Fetch an http or https URL and store it as a transfer with its share',
    accepts: ['owner_session', 'agent_key'],
    http: { method: 'POST', path: '/api/import-url', status: 201 },
    idempotent: true,
    input: z.strictObject({
      ...transferFields,
      url: z.string().min(1).max(8_192).describe('http or https, without a user name or password'),
      filename: fields.filename.optional().describe('As the response or the URL says when absent'),
      mimeType: fields.mimeType.optional().describe('As the response says when absent'),
    }),
    output: fields.uploadResponse,
    errors: [
      'import_url_blocked', 'import_upstream_failed', 'import_timed_out', 'payload_too_large', 'operation_in_progress', 'idempotency_key_reused',
      'group_not_found', 'transfer_not_found', 'agent_auth_required', 'invalid_agent_credential', 'invalid_owner_credential', 'forbidden_origin',
    ],
    deadlineMs: importMs.fetch + importMs.finish,
  },
});
