/** The storage service: transfers, uploads and parts, and the bytes behind them. It never decides who may fetch. */
import { z } from 'zod';
import { openFsBlobs } from '../../shared/blobs/fs.ts';
import { systemClock } from '../../shared/clock.ts';
import { storageContracts } from '../../shared/contracts/all.ts';
import { healthOf } from '../../shared/contracts/health.ts';
import { openDatabase, type Database } from '../../shared/db.ts';
import { identifyBy } from '../../shared/identify.ts';
import { measureDatabase, measureOutbox } from '../../shared/metrics.ts';
import { startRelay } from '../../shared/outbox.ts';
import { serve, type Bus } from '../../shared/rpc.ts';
import { runService } from '../../shared/service.ts';
import { baseUrlSettings, databaseSettings, integerSetting, secretSettings } from '../../shared/settings.ts';
import { startSweeper } from '../../shared/sweeper.ts';
import { deriveKeys, derivePlanKeys } from '../../shared/tokens.ts';
import type { Deps } from './deps.ts';
import { makeDigests } from './digests.ts';
import { abandonBlob } from './handlers/abandon-blob.ts';
import { abortUpload } from './handlers/abort-upload.ts';
import { completeUpload } from './handlers/complete-upload.ts';
import { deleteTransfer } from './handlers/delete-transfer.ts';
import { finishPart } from './handlers/finish-part.ts';
import { finishSingle } from './handlers/finish-single.ts';
import { initUpload } from './handlers/init-upload.ts';
import { openPart } from './handlers/open-part.ts';
import { openSingle } from './handlers/open-single.ts';
import { openTransfer } from './handlers/open-transfer.ts';
import { keepTransfer } from './handlers/keep-transfer.ts';
import { readUploadStatus } from './handlers/read-upload-status.ts';
import { storeSmall } from './handlers/store-small.ts';
import { makeSettled } from './settled.ts';
import { openStore } from './store/store.ts';
import { recordSettled, sweepSteps } from './sweeper.ts';

const day = 86_400;

const settingsShape = {
  ...databaseSettings,
  ...secretSettings,
  ...baseUrlSettings,
  BLOB_DRIVER: z.literal('fs', 'must be fs').default('fs'),
  BLOB_ROOT: z.string().startsWith('/', 'must be an absolute path'),
  UPLOAD_TTL_SECONDS: integerSetting({ min: 1, max: 30 * day, default: day }),
  SWEEP_SECONDS: integerSetting({ min: 1, max: 3_600, default: 5 }),
  SETTLE_AFTER_SECONDS: integerSetting({ min: 1, max: 3_600, default: 10 }),
  BLOB_IDLE_SECONDS: integerSetting({ min: 1, max: day, default: 120 }),
  TICKET_GRACE_SECONDS: integerSetting({ min: 1, max: day, default: 120 }),
  KEEP_ENDED_SECONDS: integerSetting({ min: 1, max: 30 * day, default: 2 * day }),
  REQUEST_LIMIT: integerSetting({ min: 1, max: 100_000, default: 512 }),
};

type Settings = z.output<z.ZodObject<typeof settingsShape>>;

await runService('storage', settingsShape, async ({ settings, bus, log, metrics }) => {
  const database = measureDatabase(openDatabase(settings.DATABASE_URL, settings.DATABASE_POOL, log), settings.DATABASE_POOL, metrics);
  await database.migrate(new URL('./store/migrations/', import.meta.url));
  measureOutbox(database, metrics);
  const relay = startRelay(bus, database, 'storage', log);
  const deps = makeDeps(settings, database, bus);
  const sweeper = startSweeper(sweepSteps(deps), log, settings.SWEEP_SECONDS);

  const served = serve({
    bus, log, metrics,
    contracts: { ...storageContracts, ...healthOf('storage') },
    handlers: {
      storeSmall: storeSmall(deps),
      openSingle: openSingle(deps),
      finishSingle: finishSingle(deps),
      abandonBlob: abandonBlob(deps),
      initUpload: initUpload(deps),
      openPart: openPart(deps),
      finishPart: finishPart(deps),
      completeUpload: completeUpload(deps),
      abortUpload: abortUpload(deps),
      readUploadStatus: readUploadStatus(deps),
      openTransfer: openTransfer(deps),
      deleteTransfer: deleteTransfer(deps),
      keepTransfer: keepTransfer(deps),
      readHealth: async () => ({ ready: await database.isReady() }),
    },
    identify: identifyBy(bus),
    limit: settings.REQUEST_LIMIT,
    onHandled: relay.wake,
  });

  return {
    isReady: database.isReady,
    async stop() {
      await served.drain();
      await sweeper.stop();
      await recordSettled(deps).catch((error: unknown) => log.warn({ err: error }, 'shares will be settled once more'));
      await relay.close();
      await database.close();
    },
  };
});

function makeDeps(settings: Settings, database: Database, bus: Bus): Deps {
  const blobs = openFsBlobs(settings.BLOB_ROOT);
  return {
    store: openStore(database),
    blobs,
    bus,
    clock: systemClock,
    digests: makeDigests(blobs),
    settled: makeSettled(),
    keys: {
      deleteToken: deriveKeys(settings.AEX_SECRET, 'delete token'),
      requestDigest: deriveKeys(settings.AEX_SECRET, 'request digest'),
      plan: derivePlanKeys(settings.AEX_SECRET),
    },
    baseUrl: settings.BASE_URL,
    limits: {
      uploadTtl: settings.UPLOAD_TTL_SECONDS,
      settleAfter: settings.SETTLE_AFTER_SECONDS,
      blobIdle: settings.BLOB_IDLE_SECONDS,
      ticketGrace: settings.TICKET_GRACE_SECONDS,
      keepEnded: settings.KEEP_ENDED_SECONDS,
    },
  };
}
