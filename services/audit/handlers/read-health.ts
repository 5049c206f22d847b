/** Health: audit can work when its database answers. */
import type { Handler } from '../../../shared/contract.ts';
import type { healthOf } from '../../../shared/contracts/health.ts';
import type { Database } from '../../../shared/db.ts';

interface Deps {
  readonly database: Pick<Database, 'isReady'>;
}

export const readHealth = ({ database }: Deps): Handler<ReturnType<typeof healthOf<'audit'>>['readHealth']> =>
  async function readHealth() {
    return { ready: await database.isReady() };
  };
