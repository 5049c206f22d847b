/** The gateway gave up writing: the file goes now, not when the sweeper finds it. */
import type { Handler } from '../../../shared/contract.ts';
import type { uploads } from '../../../shared/contracts/uploads.ts';
import type { Deps } from '../deps.ts';

export const abandonBlob = ({ store }: Deps): Handler<typeof uploads.abandonBlob> =>
  async function abandonBlob({ key }) {
    return { abandoned: await store.discardBlob(key) };
  };
