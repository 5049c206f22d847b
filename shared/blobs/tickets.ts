/** Opens tickets: each names the driver that it is for, so whoever holds one needs no setting but the folder of the fs driver. */
import type { Bus } from '../rpc.ts';
import type { BlobReader, BlobWriter } from './blobs.ts';
import { openFsBlobs } from './fs.ts';
import { openS3Http } from './s3-http.ts';
import { s3Reader } from './s3-read.ts';
import { s3Writer } from './s3-write.ts';
import { callStorage } from './store-calls.ts';

/** Memory and connections are bounded over all transfers that go through this object. */
export function openTickets({ root, bus }: { root?: string | undefined; bus: Pick<Bus, 'call'> }): BlobReader & BlobWriter {
  const calls = callStorage(bus);
  const http = openS3Http();
  const s3 = { ...s3Reader(calls, http), ...s3Writer(calls, http) };
  const fs = root === undefined ? undefined : openFsBlobs(root);
  const driverOf = (driver: 'fs' | 's3') => {
    if (driver === 's3') return s3;
    if (!fs) throw new Error('BLOB_ROOT must be set to the folder of the fs driver');
    return fs;
  };
  return {
    write: async (ticket, source, options) => driverOf(ticket.driver).write(ticket, source, options),
    open: async (ticket) => driverOf(ticket.driver).open(ticket),
  };
}
