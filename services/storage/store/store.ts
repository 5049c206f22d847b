/** Everything that storage asks of its tables, as one object. */
import type { Database } from '../../../shared/db.ts';
import { assembliesStore } from './assemblies.ts';
import { blobsStore } from './blobs.ts';
import { expiryStore } from './expiry.ts';
import { operationsStore } from './operations.ts';
import { partsStore } from './parts.ts';
import { settlementsStore } from './settlements.ts';
import { transfersStore } from './transfers.ts';
import { uploadsStore } from './uploads.ts';

export type Store = ReturnType<typeof openStore>;

export function openStore(database: Database) {
  return {
    ...transfersStore(database),
    ...uploadsStore(database),
    ...partsStore(database),
    ...blobsStore(database),
    ...assembliesStore(database),
    ...operationsStore(database),
    ...settlementsStore(database),
    ...expiryStore(database),
  };
}
