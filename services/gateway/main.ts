/** The gateway: HTTP and pages in front, the services behind. It has no database and no bucket credentials. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { measureBlobs } from '../../shared/blobs/measured.ts';
import { openTickets } from '../../shared/blobs/tickets.ts';
import { runService } from '../../shared/service.ts';
import { baseUrlSettings, integerSetting, listSetting } from '../../shared/settings.ts';
import { buildApp } from './app.ts';
import { legacySettings } from './legacy-surfaces.ts';
import { openFollowPipes } from './follow-pipes.ts';
import { rateSettings, readRates } from './rate-settings.ts';
import { openUses } from './uses.ts';

const settingsShape = {
  ...baseUrlSettings,
  HOST: z.string().default('127.0.0.1').describe('The address to listen on'),
  PORT: integerSetting({ min: 0, max: 65_535, default: 8787 }).describe('The port to listen on; 0 takes a free one'),
  /** Where the fs driver's files are; tickets of an object store need none. */
  BLOB_ROOT: z.string().optional().describe('The folder of the `fs` driver, the same as storage has; not needed with an object store'),
  TRUSTED_PROXIES: listSetting(isAddressRange, 'must be addresses or CIDR ranges separated by commas').describe('Addresses or CIDR ranges, separated by commas, of the proxies whose `X-Forwarded-For` is believed'),
  MCP_ALLOWED_HOSTS: listSetting((name) => /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)$/.test(name), 'must be host names without ports, in small letters, separated by commas').describe('More host names, separated by commas, at which `/mcp` answers'),
  MCP_ALLOWED_ORIGINS: listSetting((origin) => /^[a-z][a-z0-9+.-]*:\/\/[^\s/]+$/.test(origin), 'must be origins such as https://app.example, separated by commas').describe('More origins, separated by commas, whose pages may speak to `/mcp`'),
  // Shorter than an idle connection is kept.
  PIPE_WAIT_SECONDS: integerSetting({ min: 1, max: 70, default: 60 }).describe('How long a reader waits for the first byte of a pipe'),
  PIPE_IDLE_SECONDS: integerSetting({ min: 1, max: 70, default: 60 }).describe('How long the sender of a pipe may be silent'),
  // Whoever spreads requests has to see first that /readyz says no.
  LEAVE_SECONDS: integerSetting({ min: 0, max: 600, default: 0 }).describe('How long requests are still taken after SIGTERM, while `/readyz` says no already'),
  REQUEST_LIMIT: integerSetting({ min: 1, max: 100_000, default: 1_000 }).describe('Requests under way at once in one process; one more is answered `overloaded`'),
  TRANSFER_LIMIT: integerSetting({ min: 1, max: 100_000, default: 2_000 }).describe('Transfers of bytes under way at once in one process, counted beside the requests'),
  ...rateSettings,
  ...legacySettings,
};

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };

const idleLookMs = 200;

/** `10.0.0.0/8` or `::1`. A count of hops is not one: whoever adds a header would be believed. */
function isAddressRange(range: string): boolean {
  const [address, bits, rest] = range.split('/');
  const family = isIP(address!);
  return family !== 0 && rest === undefined && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)));
}

await runService('gateway', settingsShape, async ({ settings, bus, log, metrics }) => {
  const uses = openUses(bus, log);
  const leaving = new AbortController();
  const app = await buildApp({
    bus, log, uses, version,
    blobs: measureBlobs(openTickets({ root: settings.BLOB_ROOT, bus }), metrics),
    metrics: { registry: metrics, isShown: settings.METRICS_PORT === undefined },
    follows: openFollowPipes(bus),
    baseUrl: settings.BASE_URL,
    pipeWaitMs: settings.PIPE_WAIT_SECONDS * 1_000,
    pipeIdleMs: settings.PIPE_IDLE_SECONDS * 1_000,
    trustedProxies: settings.TRUSTED_PROXIES,
    mcp: { hosts: settings.MCP_ALLOWED_HOSTS, origins: settings.MCP_ALLOWED_ORIGINS },
    legacy: settings.LEGACY_SURFACES,
    rates: readRates(settings),
    bounds: { requests: settings.REQUEST_LIMIT, transfers: settings.TRANSFER_LIMIT },
    leaving: leaving.signal,
  });
  await app.listen({ host: settings.HOST, port: settings.PORT });
  return {
    async stop() {
      leaving.abort();
      await sleep(settings.LEAVE_SECONDS * 1_000);
      // A connection whose last answer has gone out would be kept for the next request, which never comes, and hold up the stop.
      const letGo = setInterval(() => app.server.closeIdleConnections(), idleLookMs);
      await app.close();
      clearInterval(letGo);
      await uses.drain();
    },
  };
});
