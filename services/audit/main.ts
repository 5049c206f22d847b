/** Audit: records every service's events and answers queries about them (interface chapters: Audit, Events). */
import { systemClock } from '../../shared/clock.ts';
import { auditContracts } from '../../shared/contracts/all.ts';
import { healthOf } from '../../shared/contracts/health.ts';
import { openDatabase } from '../../shared/db.ts';
import { identifyBy } from '../../shared/identify.ts';
import { serve } from '../../shared/rpc.ts';
import { runService } from '../../shared/service.ts';
import { databaseSettings, integerSetting, secretSettings } from '../../shared/settings.ts';
import { startSweeper } from '../../shared/sweeper.ts';
import { deriveKeys } from '../../shared/tokens.ts';
import { startRecorder } from './events.ts';
import { queryAudit } from './handlers/query-audit.ts';
import { readHealth } from './handlers/read-health.ts';
import { measureDatabase } from '../../shared/metrics.ts';
import { keepPartitions } from './partition-keeper.ts';
import { openEventStore } from './store/events.ts';
import { openPartitionStore } from './store/partitions.ts';
import { readInOrder } from './store/select-events.ts';

const settingsShape = {
  ...databaseSettings,
  ...secretSettings,
  EVENT_STREAM_REPLICAS: integerSetting({ min: 1, max: 5, default: 1 }).describe('Copies of the event stream in NATS; 3 where there are three servers'),
  /** Events are kept at least so long, and dropped with their month; 0 keeps everything. */
  AUDIT_RETENTION_DAYS: integerSetting({ min: 0, max: 36_500, default: 400 }).describe('Events are kept at least so long, and dropped with their month; 0 keeps everything'),
};

/** Requests under way at once in one process. */
const limit = 512;
const sweepSeconds = 3_600;

await runService('audit', settingsShape, async ({ settings, bus, log, metrics }) => {
  const database = measureDatabase(openDatabase(settings.DATABASE_URL, settings.DATABASE_POOL, log, readInOrder), settings.DATABASE_POOL, metrics);
  await database.migrate(new URL('./store/migrations/', import.meta.url));
  const store = openEventStore(database, systemClock);
  const sweepSteps = { keepPartitions: () => keepPartitions({ store: openPartitionStore(database), clock: systemClock, log, retentionDays: settings.AUDIT_RETENTION_DAYS }) };
  // Not waited for: an event that comes before its partition makes it by itself.
  const begun = sweepSteps.keepPartitions().catch((error: unknown) => log.warn({ err: error }, 'partitions could not be kept and are looked at again'));
  const sweeper = startSweeper(sweepSteps, log, sweepSeconds);
  const recorder = startRecorder({ bus, store, log, metrics, replicas: settings.EVENT_STREAM_REPLICAS });
  const served = serve({
    bus,
    contracts: { ...auditContracts, ...healthOf('audit') },
    handlers: {
      queryAudit: queryAudit({ store, cursorKeys: deriveKeys(settings.AEX_SECRET, 'cursor') }),
      readHealth: readHealth({ database }),
    },
    identify: identifyBy(bus),
    log, metrics,
    limit,
  });
  return {
    isReady: database.isReady,
    async stop() {
      await served.drain();
      await recorder.stop();
      await begun;
      await sweeper.stop();
      await database.close();
    },
  };
});
