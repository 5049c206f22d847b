/** The storage service: transfers, uploads and parts, and the bytes behind them. It never decides who may fetch. */
import type { z } from 'zod';
import { systemClock } from '../../shared/clock.ts';
import { storageContracts } from '../../shared/contracts/all.ts';
import { healthOf } from '../../shared/contracts/health.ts';
import { openDatabase, type Database } from '../../shared/db.ts';
import { identifyBy } from '../../shared/identify.ts';
import { measureDatabase, measureOutbox } from '../../shared/metrics.ts';
import { startRelay } from '../../shared/outbox.ts';
import { announcePipe } from '../../shared/pipe-wakes.ts';
import { serve, type Bus } from '../../shared/rpc.ts';
import { runService } from '../../shared/service.ts';
import { baseUrlSettings, databaseSettings, directSettings, integerSetting, secretSettings } from '../../shared/settings.ts';
import { startSweeper } from '../../shared/sweeper.ts';
import { deriveKeys, derivePlanKeys } from '../../shared/tokens.ts';
import { startCompletions } from './completions.ts';
import { blobSettings, openBlobs } from './blob-settings.ts';
import type { Deps } from './deps.ts';
import { makeDigests } from './digests.ts';
import { abandonBlob } from './handlers/abandon-blob.ts';
import { keepLease, recordPiece, releaseLease } from './handlers/append-pieces.ts';
import { abortUpload } from './handlers/abort-upload.ts';
import { acceptCompletion } from './handlers/accept-completion.ts';
import { listArchive, recordArchive, zipFolder } from './handlers/archive.ts';
import { completeUpload } from './handlers/complete-upload.ts';
import { createPipe } from './handlers/create-pipe.ts';
import { createFolder } from './handlers/create-folder.ts';
import { declareFile } from './handlers/declare-file.ts';
import { deleteTransfer } from './handlers/delete-transfer.ts';
import { signDirectParts } from './handlers/direct-lane.ts';
import { finishPart } from './handlers/finish-part.ts';
import { finishSingle } from './handlers/finish-single.ts';
import { initUpload } from './handlers/init-upload.ts';
import { sealBlob, signRead, signWrite, touchBlob } from './handlers/object-store.ts';
import { openPart } from './handlers/open-part.ts';
import { openPlace } from './handlers/open-place.ts';
import { openSingle } from './handlers/open-single.ts';
import { openTransfer } from './handlers/open-transfer.ts';
import { keepTransfer } from './handlers/keep-transfer.ts';
import { followPipe } from './handlers/follow-pipe.ts';
import { abortPipe, completePipe, openPipe } from './handlers/write-pipe.ts';
import { listFolder } from './handlers/list-folder.ts';
import { readCompletion } from './handlers/read-completion.ts';
import { readUploadStatus } from './handlers/read-upload-status.ts';
import { replaySingle } from './handlers/replay-single.ts';
import { abortResumable, beginResumable, continueResumable, declareSize, finishResumable, readResumable } from './handlers/resumables.ts';
import { storeSmall } from './handlers/store-small.ts';
import { makeJoined } from './joined.ts';
import { makeSettled } from './settled.ts';
import { openStore } from './store/store.ts';
import { recordSettled, sweepSteps } from './sweeper.ts';

const day = 86_400;
const GiB = 1_024 ** 3;

const settingsShape = {
  ...databaseSettings,
  ...secretSettings,
  ...baseUrlSettings,
  ...blobSettings,
  ...directSettings,
  UPLOAD_TTL_SECONDS: integerSetting({ min: 1, max: 30 * day, default: day }).describe('Life of an upload that is not completed'),
  SWEEP_SECONDS: integerSetting({ min: 1, max: 3_600, default: 5 }).describe('Time between two looks at what has ended'),
  SETTLE_AFTER_SECONDS: integerSetting({ min: 1, max: 3_600, default: 10 }).describe('After which a transfer whose share was left out by a crash is given it'),
  BLOB_IDLE_SECONDS: integerSetting({ min: 1, max: day, default: 120 }).describe('Silence after which a write counts as given up'),
  APPEND_LEASE_SECONDS: integerSetting({ min: 2, max: 600, default: 15 }).describe('Silence after which another writer may take over a pipe or a resumable upload'),
  TICKET_GRACE_SECONDS: integerSetting({ min: 1, max: day, default: 120 }).describe('How long a removed file is remembered: a writer that was let through before may make it again, and it is removed again'),
  KEEP_ENDED_SECONDS: integerSetting({ min: 1, max: 30 * day, default: 2 * day }).describe('How long the row of an ended upload or transfer is kept, so that it can be told why'),
  // The places of an archive's entries fit one message.
  FOLDER_MAX_FILES: integerSetting({ min: 1, max: 200_000, default: 100_000 }).describe('Files of one folder'),
  FOLDER_MAX_BYTES: integerSetting({ min: 1, max: 5_120 * GiB, default: 100 * GiB }).describe('Bytes of one folder'),
  REQUEST_LIMIT: integerSetting({ min: 1, max: 100_000, default: 512 }).describe('Requests under way at once in one process; more are refused with `overloaded`'),
};

type Settings = z.output<z.ZodObject<typeof settingsShape>>;

await runService('storage', settingsShape, async ({ settings, bus, log, metrics }) => {
  const database = measureDatabase(openDatabase(settings.DATABASE_URL, settings.DATABASE_POOL, log), settings.DATABASE_POOL, metrics);
  await database.migrate(new URL('./store/migrations/', import.meta.url));
  measureOutbox(database, metrics);
  const relay = startRelay(bus, database, 'storage', log);
  const deps = makeDeps(settings, { database, bus, publish: relay.publish, onAccepted: () => completions.wake() });
  const completions = startCompletions(deps, log, relay.wake);
  const sweeper = startSweeper(sweepSteps(deps), log, settings.SWEEP_SECONDS);

  const served = serve({
    bus, log, metrics,
    contracts: { ...storageContracts, ...healthOf('storage') },
    handlers: {
      storeSmall: storeSmall(deps),
      openSingle: openSingle(deps),
      openPlace: openPlace(deps),
      finishSingle: finishSingle(deps),
      replaySingle: replaySingle(deps),
      abandonBlob: abandonBlob(deps),
      initUpload: initUpload(deps),
      openPart: openPart(deps),
      finishPart: finishPart(deps),
      signDirectParts: signDirectParts(deps),
      completeUpload: completeUpload(deps),
      abortUpload: abortUpload(deps),
      readUploadStatus: readUploadStatus(deps),
      beginResumable: beginResumable(deps),
      readResumable: readResumable(deps),
      declareSize: declareSize(deps),
      continueResumable: continueResumable(deps),
      finishResumable: finishResumable(deps),
      abortResumable: abortResumable(deps),
      recordPiece: recordPiece(deps),
      keepLease: keepLease(deps),
      releaseLease: releaseLease(deps),
      createPipe: createPipe(deps),
      openPipe: openPipe(deps),
      completePipe: completePipe(deps),
      abortPipe: abortPipe(deps),
      followPipe: followPipe(deps),
      touchBlob: touchBlob(deps),
      signWrite: signWrite(deps),
      sealBlob: sealBlob(deps),
      signRead: signRead(deps),
      openTransfer: openTransfer(deps),
      deleteTransfer: deleteTransfer(deps),
      keepTransfer: keepTransfer(deps),
      createFolder: createFolder(deps),
      declareFile: declareFile(deps),
      completeFile: acceptCompletion(deps),
      completeDirectFile: acceptCompletion(deps),
      readCompletion: readCompletion(deps),
      listFolder: listFolder(deps),
      zipFolder: zipFolder(deps),
      listArchive: listArchive(deps),
      recordArchive: recordArchive(deps),
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
      await completions.stop();
      await sweeper.stop();
      await recordSettled(deps).catch((error: unknown) => log.warn({ err: error }, 'shares will be settled once more'));
      await relay.close();
      await database.close();
    },
  };
});

function makeDeps(settings: Settings, { database, bus, publish, onAccepted }: { database: Database; bus: Bus } & Pick<Deps, 'publish' | 'onAccepted'>): Deps {
  const blobs = openBlobs(settings, settings.BLOB_IDLE_SECONDS);
  return {
    store: openStore(database),
    blobs,
    bus,
    publish,
    onAccepted,
    clock: systemClock,
    digests: makeDigests(blobs),
    joined: makeJoined(),
    settled: makeSettled(),
    wakePipe: (id) => announcePipe(bus, id),
    keys: {
      deleteToken: deriveKeys(settings.AEX_SECRET, 'delete token'),
      requestDigest: deriveKeys(settings.AEX_SECRET, 'request digest'),
      plan: derivePlanKeys(settings.AEX_SECRET),
    },
    baseUrl: settings.BASE_URL,
    folder: { maxFiles: settings.FOLDER_MAX_FILES, maxBytes: settings.FOLDER_MAX_BYTES, direct: settings.DIRECT_LANE === 'on' },
    limits: {
      uploadTtl: settings.UPLOAD_TTL_SECONDS,
      settleAfter: settings.SETTLE_AFTER_SECONDS,
      blobIdle: settings.BLOB_IDLE_SECONDS,
      appendLease: settings.APPEND_LEASE_SECONDS,
      ticketGrace: settings.TICKET_GRACE_SECONDS,
      keepEnded: settings.KEEP_ENDED_SECONDS,
    },
  };
}
