/** One run of an import: fetch, store, record how it ended. */
import type { AnswerOf, HandlerContext, InputOf } from '../../../shared/contract.ts';
import { importMs, type imports } from '../../../shared/contracts/imports.ts';
import { Failure, type ErrorCode } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';
import { describeSource } from '../domain/describe-source.ts';
import { checkHead, tooLarge } from '../domain/response.ts';
import type { Source } from '../domain/source-url.ts';
import { holdLease } from '../lease.ts';
import { timeLimit } from '../outside/abort.ts';
import { fetchSource } from '../outside/fetch-source.ts';
import { readSourceBody } from '../outside/source-body.ts';
import type { Planned } from './import-url.ts';
import { replay } from './replay.ts';
import { storeSource } from './store-source.ts';

type Answer = AnswerOf<typeof imports.importUrl>;

interface Importing {
  readonly input: InputOf<typeof imports.importUrl>;
  readonly source: Source;
  readonly planned: Planned;
  readonly attempt: number;
  readonly context: HandlerContext;
}

/** What the record says of a run. Of the URL only its host: the rest may hold secrets. */
interface Progress {
  readonly host: string;
  hops: number;
  size?: number;
}

/** After these nobody knows whether the transfer exists: the run is left to its lease, and whoever comes next looks first. */
const unknown: ReadonlySet<ErrorCode> = new Set(['deadline_exceeded', 'service_unavailable', 'operation_in_progress']);

export async function runImport(deps: Deps, importing: Importing): Promise<Answer> {
  const { planned: { planId }, attempt, context, source } = importing;
  const lease = holdLease(deps.store, { planId, attempt }, { seconds: deps.limits.leaseSeconds, log: context.log });
  const progress: Progress = { host: source.host, hops: 0 };
  const end = recorder(deps, importing, progress);
  try {
    const answer = (attempt > 1 ? await earlierAnswer(deps, importing) : undefined) ?? await fetchAndStore(deps, importing, { progress, lost: lease.lost }).catch(orOtherAnswer(deps, importing));
    await end('completed');
    return answer;
  } catch (error) {
    const failure = nameFailure(error, importing);
    await end('failed', failure instanceof Failure ? failure.code : 'internal');
    throw failure;
  } finally {
    lease.release();
  }
}

/** A run before this one may have stored everything and died before it could say so. */
async function earlierAnswer(deps: Deps, { planned, context }: Importing): Promise<Answer | undefined> {
  return replay(deps, planned, context).catch((error: unknown) => {
    if (error instanceof Failure && error.code === 'transfer_not_found') return undefined;
    throw error;
  });
}

/** A run before this one was only slow, and stored its bytes first: its answer is the import's. */
function orOtherAnswer(deps: Deps, { planned, context }: Importing) {
  return (error: unknown): Promise<Answer> => {
    if (error instanceof Failure && error.code === 'plan_already_used') return replay(deps, planned, context);
    throw error;
  };
}

async function fetchAndStore(deps: Deps, importing: Importing, { progress, lost }: { progress: Progress; lost: AbortSignal }): Promise<Answer> {
  const { input, source, planned: { planId, plan, maxBytes }, context } = importing;
  const { outside, limits, stopping } = deps;
  const left = Math.max(0, Math.min(limits.totalMs, context.deadline - deps.clock() - importMs.finish));
  const signal = AbortSignal.any([stopping, lost, timeLimit(left, `The import was not done within ${Math.round(left / 1_000)} seconds.`)]);
  const fetched = await fetchSource(outside, source, { signal, onRedirect: () => { progress.hops += 1; } });
  try {
    const coding = checkHead(fetched.head, maxBytes);
    const body = readSourceBody(fetched.body, { coding, maxBytes, idleMs: outside.idleMs, signal });
    const lane = { planId, plan, narrowing: {}, ...leftOpen(input, describeSource(fetched.url, fetched.body.headers)) };
    return await storeSource(deps, { lane, body, onBytes: (size) => { progress.size = size; } }, ownRequest(context));
  } finally {
    fetched.body.destroy();
  }
}

/** What the sender said of the file wins over what its source says. */
function leftOpen({ filename, mimeType }: Importing['input'], described: { filename: string; mimeType: string }) {
  if (filename !== undefined && mimeType !== undefined) return {};
  return { described: { ...(filename === undefined && { filename: described.filename }), ...(mimeType === undefined && { mimeType: described.mimeType }) } };
}

const ownRequest = ({ requestId, traceparent, address }: HandlerContext) => ({ requestId, traceparent, ...(address && { address }) });

/** The lane's own words are about plans, of which this sender knows nothing. */
function nameFailure(error: unknown, { planned: { maxBytes } }: Importing): unknown {
  return error instanceof Failure && error.code === 'payload_too_large' ? tooLarge(maxBytes) : error;
}

/** Writes how a run ended. When it cannot be written now, whoever looks after abandoned runs writes it later: the caller's answer stands. */
function recorder({ store, clock }: Deps, { planned: { planId, transferId, shareId }, attempt, context }: Importing, progress: Progress) {
  const began = clock();
  return async function end(state: 'completed' | 'failed', code?: ErrorCode): Promise<void> {
    if (code && unknown.has(code)) return;
    const data = { ...progress, ms: clock() - began };
    const about = { targetType: 'file', targetId: transferId, data } as const;
    const event = state === 'completed'
      ? eventOf(context, clock(), { eventType: 'import.completed', shareId, ...about })
      : eventOf(context, clock(), { eventType: 'import.failed', outcome: code === 'import_url_blocked' ? 'denied' : 'error', ...(code && { code }), ...about });
    await store.endImport({ planId, attempt }, state, event)
      .catch((cause: unknown) => context.log.warn({ err: cause }, 'the end of an import is recorded later'));
  };
}
