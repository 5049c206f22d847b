/** POST /api/upload, before the file: says where its bytes go. Their plan is made once the whole form is there; bytes that get none are given up by the sweeper. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import { randomText } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';

export const openPlace = ({ store, blobs, limits }: Deps): Handler<typeof uploads.openPlace> =>
  async function openPlace({ maxBytes }) {
    const key = randomText();
    await store.beginBlob(key, null, limits.blobIdle);
    return { ticket: await blobs.ticketToWrite({ key, offset: 0, maxBytes }) };
  };
