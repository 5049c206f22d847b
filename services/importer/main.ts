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
  BLOB_ROOT: z.string().startsWith('/', 'must be an absolute path').optional().describe('The folder of the `fs` driver, the same as storage has; not needed with an object store'),
  IMPORT_MAX_BYTES: integerSetting({ min: 1, max: 5_120 * GiB, default: GiB }).describe('Size of one import, before and after decoding; `TRANSFER_MAX_BYTES` holds as well'),
  IMPORT_MAX_REDIRECTS: integerSetting({ min: 0, max: 20, default: 5 }).describe('Redirects that are followed'),
  IMPORT_FIRST_BYTE_SECONDS: integerSetting({ min: 1, max: importMs.fetch / 1_000, default: 10 }).describe('Patience for each hop, until its response begins'),
  // Below the patience of the blob writer, which would name it otherwise.
  IMPORT_IDLE_SECONDS: integerSetting({ min: 1, max: 50, default: 30 }).describe('Patience without a byte of the body'),
  IMPORT_TIMEOUT_SECONDS: integerSetting({ min: 1, max: importMs.fetch / 1_000, default: importMs.fetch / 1_000 }).describe('Patience for the whole fetch'),
  IMPORT_LEASE_SECONDS: integerSetting({ min: 3, max: 3_600, default: 15 }).describe('After which an import whose process died may be run again'),
  IMPORT_CONCURRENCY: integerSetting({ min: 1, max: 10_000, default: 32 }).describe('Imports at once in one process; one caller has at most a quarter of them'),
  IMPORT_ALLOW_RANGES: rangesSetting.describe('Addresses or CIDR ranges, separated by commas, that may be imported from though they are not public'),
  IMPORT_DENY_RANGES: rangesSetting.describe('Addresses or CIDR ranges, separated by commas, that must not be imported from; stronger than `IMPORT_ALLOW_RANGES`'),
  IMPORT_DENY_PORTS: listSetting((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535, 'must be ports separated by commas').describe('Ports, separated by commas, that must not be imported from'),
  IMPORT_DNS_SERVERS: listSetting(isServer, 'must be addresses of name servers, with or without a port, separated by commas').describe("Name servers, separated by commas, as `address` or `address:port`; the system's when absent"),
  SWEEP_SECONDS: integerSetting({ min: 1, max: 3_600, default: 5 }).describe('Time between two looks at imports that were left half-done'),
  KEEP_ENDED_SECONDS: integerSetting({ min: day, max: 30 * day, default: 2 * day }).describe('How long the row of an ended import is kept, for requests that are sent again'),
  REQUEST_LIMIT: integerSetting({ min: 1, max: 100_000, default: 512 }).describe('Requests under way at once in one process; more are refused with `overloaded`'),
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
