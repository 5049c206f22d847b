/** Looks host names up: by the system, or by the name servers that a deployment names. Whoever asks checks every answer. */
import { lookup, Resolver } from 'node:dns/promises';
import { fail } from '../../../shared/errors.ts';
import { orAborted } from './abort.ts';

export interface Names {
  /**
   * Every address of a host, IPv4 and IPv6.
   * @throws import_upstream_failed when there is none, or not all could be asked for
   */
  lookUp(host: string, signal: AbortSignal): Promise<string[]>;
}

const tryMs = 2_000;
const tries = 3;
/** A name that has addresses of the other family only. */
const none: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

/** Without servers the system's own way is taken, with its hosts file and search domains. */
export function openNames(servers: readonly string[]): Names {
  const find = servers.length > 0 ? (host: string) => ask(servers, host) : askSystem;
  return {
    async lookUp(host, signal) {
      const addresses = await orAborted(find(host).catch(unresolved), signal);
      return addresses.length > 0 ? addresses : unresolved();
    },
  };
}

function unresolved(cause?: unknown): never {
  throw fail('import_upstream_failed', { detail: 'The host name of the URL could not be resolved.' }, cause);
}

async function askSystem(host: string): Promise<string[]> {
  const answers = await lookup(host, { all: true, order: 'verbatim' });
  return answers.map(({ address }) => address);
}

async function ask(servers: readonly string[], host: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: tryMs, tries });
  resolver.setServers(servers);
  const orNone = (error: { code?: unknown }): string[] => {
    if (none.has(error.code)) return [];
    throw error;
  };
  const families = await Promise.all([resolver.resolve4(host).catch(orNone), resolver.resolve6(host).catch(orNone)]);
  return families.flat();
}
