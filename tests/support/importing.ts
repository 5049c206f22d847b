/** A stack that imports from the tests' own internet, and the one request of it. */
import type { Answer, Exchange, Request } from './exchange.ts';
import { startOwnStack, type OwnStack } from './own-stack.ts';
import { allowPublic } from './source-server.ts';

/** Bounds that a test can wait for. */
export const importBounds = { IMPORT_MAX_BYTES: String(1_024 ** 2), IMPORT_FIRST_BYTE_SECONDS: '2', IMPORT_IDLE_SECONDS: '2', IMPORT_TIMEOUT_SECONDS: '4', IMPORT_LEASE_SECONDS: '3', SWEEP_SECONDS: '1' };

/** `dns` names the only name server that is asked; nothing of the real internet is. */
export async function startImporting(dns: string, env: Record<string, string> = {}): Promise<OwnStack> {
  return startOwnStack({ importer: { ...allowPublic, ...importBounds, IMPORT_DNS_SERVERS: dns, ...env } });
}

export function importer({ call }: Pick<Exchange, 'call'>) {
  return (url: string, fields: Record<string, unknown> = {}, request: Request = {}): Promise<Answer> => call('/api/import-url', { ...request, json: { url, ...fields } });
}
