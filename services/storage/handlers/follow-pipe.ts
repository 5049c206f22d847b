/** What followers of a pipe ask again and again: what has come since, and whether more will. Whether they may have it, policy has said. */
import type { Handler } from '../../../shared/contract.ts';
import type { pipes } from '../../../shared/contracts/pipes.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';

/** In one answer; who is further behind asks again. */
const maxPieces = 100;

export const followPipe = ({ store }: Deps): Handler<typeof pipes.followPipe> =>
  async function followPipe({ pipeId, from }) {
    const pipe = await store.followPipe(pipeId, from, maxPieces);
    if (!pipe) throw fail('transfer_not_found');
    const { state, received, segments } = pipe;
    return { state: state === 'open' ? 'live' as const : state, size: received, ticket: { driver: 'fs' as const, segments } };
  };
