/** POST /api/import-url: the exchange fetches a URL itself; the same operation is fetched once (interface chapter: Transfer plan and creation). */
import { createHash } from 'node:crypto';
import { creatorOf, type AnswerOf, type Handler, type HandlerContext, type InputOf } from '../../../shared/contract.ts';
import type { imports } from '../../../shared/contracts/imports.ts';
import { plans } from '../../../shared/contracts/plans.ts';
import { fail } from '../../../shared/errors.ts';
import { callerScope } from '../../../shared/operation.ts';
import { ownContext } from '../../../shared/rpc.ts';
import type { Deps } from '../deps.ts';
import { readSourceUrl } from '../domain/source-url.ts';
import { replay } from './replay.ts';
import { runImport } from './run-import.ts';

type Input = InputOf<typeof imports.importUrl>;
export type Planned = AnswerOf<typeof plans.planImport>;

export const importUrl = (deps: Deps): Handler<typeof imports.importUrl> =>
  async function importUrl(input, context) {
    const { store, places, limits } = deps;
    const source = readSourceUrl(input.url);
    const planned = await planImport(deps, input, context);
    const first = await firstAnswer(deps, planned, context);
    if (first) return first;
    const leave = places.enter(callerScope(context.caller, context.address));
    try {
      const attempt = await store.claimImport({ ...planned, ...creatorOf(context.caller), host: source.host }, limits.leaseSeconds);
      if (attempt === undefined) throw inProgress();
      return await runImport(deps, { input, source, planned, attempt, context });
    } finally {
      leave();
    }
  };

/** Promise: what policy refuses is refused before anything is fetched, and the same operation has the same plan. */
async function planImport({ bus, limits }: Deps, { url, ...fields }: Input, context: HandlerContext): Promise<Planned> {
  const { credential, operationId } = context;
  const source = createHash('sha256').update(url).digest('hex');
  return bus.call(plans.planImport, { ...fields, source, maxBytes: limits.maxBytes }, { ...ownContext(context), ...(credential && { credential }), ...(operationId && { operationId }) });
}

/** The answer of a run that came before, if it is there. */
async function firstAnswer(deps: Deps, planned: Planned, context: HandlerContext) {
  const state = await deps.store.findState(planned.planId);
  if (state === 'running') throw inProgress();
  return state === 'completed' ? replay(deps, planned, context) : undefined;
}

const inProgress = () => fail('operation_in_progress', { retryAfter: 1 });
