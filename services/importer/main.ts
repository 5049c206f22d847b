/** The importer service: fetches URLs for senders. It is the only one that speaks to servers of a caller's choosing, so it knows no secret of the others. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';
import { measureBlobs } from '../../shared/blobs/measured.ts';
import { openTickets } from '../../shared/blobs/tickets.ts';
import { systemClock } from '../../shared/clock.ts';
import { importerContracts } from '../../shared/contracts/all.ts';
import { healthOf } from '../../shared/contracts/health.ts';
import { importMs } from '../../shared/contracts/imports.ts';
import { openDatabase, type Database } from '../../shared/db.ts';
import { fail } from '../../shared/errors.ts';
import { identifyBy } from '../../shared/identify.ts';
import { measureDatabase, measureOutbox, type Metrics } from '../../shared/metrics.ts';
import { startRelay } from '../../shared/outbox.ts';
import { serve, type Bus } from '../../shared/rpc.ts';
import { runService } from '../../shared/service.ts';
import { databaseSettings, integerSetting } from '../../shared/settings.ts';
import { startSweeper } from '../../shared/sweeper.ts';
import type { Deps } from './deps.ts';
import { parseRange } from './domain/address-rules.ts';
import { importUrl } from './handlers/import-url.ts';
import { openNames } from './outside/names.ts';
import { makePlaces } from './places.ts';
import { importsStore } from './store/imports.ts';
import { sweepSteps } from './sweeper.ts';

const GiB = 1_024 ** 3;
const day = 86_400;

/** Texts separated by commas, each good by itself. */
const listSetting = (isGood: (text: string) => boolean, complaint: string) => z
  .string()
  .transform((text) => text.split(',').map((item) => item.trim()).filter(Boolean))
  .refine((items) => items.every(isGood), complaint)
  .default([]);

const isServer = (text: string) => isIP(/^\[?(.*?)\]?(:\d{1,5})?$/.exec(text)?.[1] ?? '') !== 0 || isIP(text) !== 0;
const rangesSetting = listSetting((text) => parseRange(text) !== undefined, 'must be addresses or CIDR ranges separated by commas').transform((texts) => texts.map((text) => parseRange(text)!));

const settingsShape = {
  ...databaseSettings,
  /** Where the fs driver's files are; tickets of an object store need none. */
  BLOB_ROOT: z.string().startsWith('/', 'must be an absolute path').optional(),
  IMPORT_MAX_BYTES: integerSetting({ min: 1, max: 5_120 * GiB, default: GiB }),
  IMPORT_MAX_REDIRECTS: integerSetting({ min: 0, max: 20, default: 5 }),
  IMPORT_FIRST_BYTE_SECONDS: integerSetting({ min: 1, max: importMs.fetch / 1_000, default: 10 }),
  // Below the patience of the blob writer, which would name it otherwise.
  IMPORT_IDLE_SECONDS: integerSetting({ min: 1, max: 50, default: 30 }),
  IMPORT_TIMEOUT_SECONDS: integerSetting({ min: 1, max: importMs.fetch / 1_000, default: importMs.fetch / 1_000 }),
  IMPORT_LEASE_SECONDS: integerSetting({ min: 3, max: 3_600, default: 15 }),
  IMPORT_CONCURRENCY: integerSetting({ min: 1, max: 10_000, default: 32 }),
  IMPORT_ALLOW_RANGES: rangesSetting,
  IMPORT_DENY_RANGES: rangesSetting,
  IMPORT_DENY_PORTS: listSetting((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535, 'must be ports separated by commas'),
  IMPORT_DNS_SERVERS: listSetting(isServer, 'must be addresses of name servers, with or without a port, separated by commas'),
  SWEEP_SECONDS: integerSetting({ min: 1, max: 3_600, default: 5 }),
  KEEP_ENDED_SECONDS: integerSetting({ min: day, max: 30 * day, default: 2 * day }),
  REQUEST_LIMIT: integerSetting({ min: 1, max: 100_000, default: 512 }),
};

/** Imports that a stop cannot wait for are still answered within this: the next replica that is asked begins them anew. */
const answerMs = 3_000;

type Settings = z.output<z.ZodObject<typeof settingsShape>>;

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };

await runService('importer', settingsShape, async ({ settings, bus, log, metrics }) => {
  const database = measureDatabase(openDatabase(settings.DATABASE_URL, settings.DATABASE_POOL, log), settings.DATABASE_POOL, metrics);
  await database.migrate(new URL('./store/migrations/', import.meta.url));
  measureOutbox(database, metrics);
  const relay = startRelay(bus, database, 'importer', log);
  const stopping = new AbortController();
  const deps = makeDeps(settings, { database, bus, metrics, stopping: stopping.signal });
  const sweeper = startSweeper(sweepSteps(deps), log, settings.SWEEP_SECONDS);

  const served = serve({
    bus, log, metrics,
    contracts: { ...importerContracts, ...healthOf('importer') },
    handlers: {
      importUrl: importUrl(deps),
      readHealth: async () => ({ ready: await database.isReady() }),
    },
    identify: identifyBy(bus),
    limit: settings.REQUEST_LIMIT,
    onHandled: relay.wake,
  });

  return {
    isReady: database.isReady,
    async stop() {
      const giveUp = setTimeout(() => stopping.abort(fail('service_unavailable', { retryAfter: 1 })), settings.DRAIN_SECONDS * 1_000 - answerMs);
      await served.drain();
      clearTimeout(giveUp);
      await sweeper.stop();
      await relay.close();
      await database.close();
    },
  };
});

function makeDeps(settings: Settings, { database, bus, metrics, stopping }: { database: Database; bus: Bus; metrics: Metrics; stopping: AbortSignal }): Deps {
  return {
    store: importsStore(database),
    blobs: measureBlobs(openTickets({ root: settings.BLOB_ROOT, bus }), metrics),
    bus, stopping,
    clock: systemClock,
    places: makePlaces(settings.IMPORT_CONCURRENCY),
    outside: {
      names: openNames(settings.IMPORT_DNS_SERVERS),
      addresses: { allow: settings.IMPORT_ALLOW_RANGES, deny: settings.IMPORT_DENY_RANGES },
      deniedPorts: settings.IMPORT_DENY_PORTS.map(Number),
      maxRedirects: settings.IMPORT_MAX_REDIRECTS,
      firstByteMs: settings.IMPORT_FIRST_BYTE_SECONDS * 1_000,
      idleMs: settings.IMPORT_IDLE_SECONDS * 1_000,
      userAgent: `asset-exchange/${version}`,
    },
    limits: {
      maxBytes: settings.IMPORT_MAX_BYTES,
      totalMs: settings.IMPORT_TIMEOUT_SECONDS * 1_000,
      leaseSeconds: settings.IMPORT_LEASE_SECONDS,
      keepEndedSeconds: settings.KEEP_ENDED_SECONDS,
    },
  };
}
