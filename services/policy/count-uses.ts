/** Counts what fetches spend. */
import type { Handler } from '../../shared/contract.ts';
import type { shares } from '../../shared/contracts/shares.ts';
import { count, type Metrics } from '../../shared/metrics.ts';

interface Spending {
  readonly spendUse: Handler<typeof shares.spendUse>;
  readonly returnUse: Handler<typeof shares.returnUse>;
}

/** The same handlers, counted: fetches by what let them through, and what came back. */
export function countUses({ spendUse, returnUse }: Spending, metrics: Metrics): Spending {
  const countFetch = count(metrics, { name: 'aex_fetches_allowed_total', help: 'Fetches that were let through: by a grant, by a use of a capped share, or by an open share without a cap', labels: ['spent'] });
  const countReturn = count(metrics, { name: 'aex_uses_returned_total', help: 'Uses and grants given back, of fetches that delivered nothing', labels: [] });
  return {
    async spendUse(fetch, context) {
      const answer = await spendUse(fetch, context);
      countFetch({ spent: fetch.grant ? 'grant' : answer.spent ? 'use' : 'nothing' });
      return answer;
    },
    async returnUse(fetch, context) {
      const answer = await returnUse(fetch, context);
      if (answer.returned) countReturn({});
      return answer;
    },
  };
}
