/** The gateway: HTTP and pages in front, the services behind. It has no database and no bucket credentials. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';
import { openFsBlobs } from '../../shared/blobs/fs.ts';
import { measureBlobs } from '../../shared/blobs/measured.ts';
import { runService } from '../../shared/service.ts';
import { baseUrlSettings, integerSetting } from '../../shared/settings.ts';
import { buildApp } from './app.ts';
import { rateSettings, readRates } from './rate-settings.ts';
import { openUses } from './uses.ts';

const settingsShape = {
  ...baseUrlSettings,
  HOST: z.string().default('127.0.0.1'),
  PORT: integerSetting({ min: 0, max: 65_535, default: 8787 }),
  BLOB_ROOT: z.string(),
  TRUSTED_PROXIES: z
    .string()
    .transform((text) => text.split(',').map((range) => range.trim()))
    .refine((ranges) => ranges.every(isAddressRange), 'must be addresses or CIDR ranges separated by commas')
    .default([]),
  ...rateSettings,
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
  const app = await buildApp({
    bus, log, uses, version,
    blobs: measureBlobs(openFsBlobs(settings.BLOB_ROOT), metrics),
    metrics: { registry: metrics, isShown: settings.METRICS_PORT === undefined },
    baseUrl: settings.BASE_URL,
    trustedProxies: settings.TRUSTED_PROXIES,
    rates: readRates(settings),
  });
  await app.listen({ host: settings.HOST, port: settings.PORT });
  return {
    async stop() {
      // A connection whose last answer has gone out would be kept for the next request, which never comes, and hold up the stop.
      const letGo = setInterval(() => app.server.closeIdleConnections(), idleLookMs);
      await app.close();
      clearInterval(letGo);
      await uses.drain();
    },
  };
});
