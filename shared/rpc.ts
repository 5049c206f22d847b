/** The only file that serves and calls requests between services, over NATS request-reply. */
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, ErrorCode, headers as natsHeaders, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from 'nats';
import type { z } from 'zod';
import {
  attachedBytes, subjectOf,
  type AnswerOf, type Caller, type Contract, type Contracts, type Credential, type Handler, type Handlers, type InputOf, type Named, type RequestContext,
} from './contract.ts';
import { fail, Failure, isErrorCode, type FailureDetails } from './errors.ts';
import type { Logger } from './log.ts';
import { count, measureEach, measureNow, type Metrics } from './metrics.ts';
import { isLong, requestPatiently, sayWorking } from './rpc-patience.ts';
import { inStep, traceIdOf, type StepFacts } from './tracing.ts';

const defaultDeadlineMs = 5_000;

/** A request that nobody took is sent again after this: the replica that left may have been the last that its server knew of. */
const untakenAgainMs = 100;

const header = {
  requestId: 'Aex-Request-Id',
  traceparent: 'traceparent',
  deadline: 'Aex-Deadline',
  /** How many bytes at the end of the payload are not JSON. */
  attached: 'Aex-Attached',
  error: 'Aex-Error',
} as const;

/** The JSON part of a request. */
interface Envelope {
  readonly input: unknown;
  readonly credential?: Credential | undefined;
  readonly address?: string | undefined;
  readonly operationId?: string | undefined;
}

/** A raw answer: JSON as it came, and the bytes beside it. The gateway passes the JSON on unread. */
export interface RawAnswer {
  readonly json: Buffer;
  readonly bytes: Buffer | undefined;
}

/** Where answers to a service come in: a place of its own, so that no other may listen there. */
export function inboxPrefix(service: string): string {
  return `_INBOX_${service}`;
}

/** The connection to NATS, which goes on reconnecting for ever. */
export interface Bus {
  readonly connection: NatsConnection;
  /** False while NATS is away: calls then fail at once instead of waiting in a buffer. */
  isConnected(): boolean;
  call<C extends Named>(contract: C, input: z.input<C['input']>, context: CallContext, bytes?: Uint8Array): Promise<AnswerOf<C> & { readonly [attachedBytes]?: Buffer }>;
  callRaw(contract: Named, input: unknown, context: CallContext, bytes?: Uint8Array): Promise<RawAnswer>;
  close(): Promise<void>;
}

/** What a call passes on about the request it belongs to. */
export type CallContext = Pick<RequestContext, 'requestId' | 'traceparent'> & Partial<RequestContext>;

/** The part of a request that goes along to another service when this one acts by itself: no credential. */
export function ownContext({ requestId, traceparent, deadline, address }: RequestContext): CallContext {
  return { requestId, traceparent, deadline, ...(address && { address }) };
}

/** Connects to NATS. Waits until the server is there, reconnects for ever, pings every few seconds. */
export async function connectBus(url: string, name: string, log: Logger): Promise<Bus> {
  const { servers, user, pass } = splitUrl(url);
  const connection = await connect({
    servers, name,
    inboxPrefix: inboxPrefix(name),
    ...(user && { user, pass }),
    maxReconnectAttempts: -1,
    waitOnFirstConnect: true,
    reconnectTimeWait: 250,
    reconnectJitter: 100,
    pingInterval: 5_000,
    maxPingOut: 2,
    // A stack trace kept for each request costs more than the request.
    noAsyncTraces: true,
  });
  let connected = true;
  /** Ends the calls under way: with the connection their answers may be lost. */
  const waiting = new Set<() => void>();
  void (async () => {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect') {
        connected = false;
        for (const lose of waiting) lose();
      }
      if (status.type === 'reconnect') connected = true;
      if (status.type === 'disconnect' || status.type === 'reconnect') log.warn({ status: status.type }, 'nats connection changed');
    }
  })();
  const isConnected = () => connected && !connection.isClosed();

  function callRaw(contract: Named, input: unknown, context: CallContext, bytes?: Uint8Array): Promise<RawAnswer> {
    return inStep(stepOf(contract, 'client', context.traceparent), ({ traceparent = context.traceparent }) => send(contract, input, { ...context, traceparent }, bytes));
  }

  async function send(contract: Named, input: unknown, context: CallContext, bytes: Uint8Array | undefined): Promise<RawAnswer> {
    if (!isConnected()) throw fail('service_unavailable', { retryAfter: 1 });
    const timeout = timeLeft(contract, context);
    const { credential, address, operationId } = context;
    const envelope: Envelope = { input, credential, address, operationId };
    const json = Buffer.from(JSON.stringify(envelope));
    const payload = bytes ? Buffer.concat([json, bytes]) : json;
    if (payload.length > (connection.info?.max_payload ?? 1_048_576)) throw fail('payload_too_large');
    const headers = requestHeaders(context, timeout, bytes);
    const ask: Ask = (patience) => isLong(contract)
      ? requestPatiently(connection, subjectOf(contract), payload, { timeout: patience, headers, inboxPrefix: inboxPrefix(name) })
      : connection.request(subjectOf(contract), payload, { timeout: patience, headers });
    return readReply(await unlessLost(untilTaken(ask, timeout)).catch((error: unknown) => { throw translateCallError(error); }));
  }

  async function unlessLost<T>(request: Promise<T>): Promise<T> {
    let lose: () => void = () => undefined;
    const lost = new Promise<never>((_resolve, reject) => { lose = () => reject(new Error('the connection to NATS broke')); });
    waiting.add(lose);
    try {
      return await Promise.race([request, lost]);
    } finally {
      waiting.delete(lose);
    }
  }

  return {
    connection,
    isConnected,
    callRaw,
    async call(contract, input, context, bytes) {
      const answer = await callRaw(contract, input, context, bytes);
      const output = JSON.parse(answer.json.toString('utf8')) as AnswerOf<typeof contract>;
      return answer.bytes ? Object.assign(output as object, { [attachedBytes]: answer.bytes }) as never : output as never;
    },
    close: () => connection.drain(),
  };
}

function stepOf({ service, name }: Named, kind: StepFacts['kind'], traceparent: string): StepFacts {
  return { name: `${service}.${name}`, kind, traceparent, attributes: { 'rpc.system.name': 'nats', 'rpc.method': `${service}/${name}` } };
}

function splitUrl(url: string): { servers: string[]; user?: string; pass?: string } {
  const parsed = url.split(',').map((part) => new URL(part.trim()));
  const { username, password } = parsed[0]!;
  const servers = parsed.map((part) => `${part.protocol}//${part.host}`);
  return { servers, ...(username && { user: decodeURIComponent(username), pass: decodeURIComponent(password) }) };
}

/** A call never waits longer than its contract says, nor past the deadline of the request it belongs to. */
function timeLeft(contract: Named, context: CallContext): number {
  const own = contract.deadlineMs ?? defaultDeadlineMs;
  const left = context.deadline === undefined ? own : Math.min(own, context.deadline - Date.now());
  if (left <= 0) throw fail('deadline_exceeded');
  return left;
}

function requestHeaders(context: CallContext, timeout: number, bytes: Uint8Array | undefined): MsgHdrs {
  const headers = natsHeaders();
  headers.set(header.requestId, context.requestId);
  headers.set(header.traceparent, context.traceparent);
  headers.set(header.deadline, String(Date.now() + timeout));
  if (bytes) headers.set(header.attached, String(bytes.length));
  return headers;
}

type Ask = (timeout: number) => Promise<Msg>;

/** Asks once more when nobody was there to take the request. Whoever took one may have acted on it, so any other error stands. */
async function untilTaken(ask: Ask, timeout: number): Promise<Msg> {
  const end = Date.now() + timeout;
  try {
    return await ask(timeout);
  } catch (error) {
    if ((error as { code?: string }).code !== ErrorCode.NoResponders || Date.now() + untakenAgainMs >= end) throw error;
    await sleep(untakenAgainMs);
    return ask(end - Date.now());
  }
}

function translateCallError(error: unknown): Failure {
  const code = (error as { code?: string }).code;
  if (code === 'TIMEOUT') return fail('deadline_exceeded', {}, error);
  // "No responders", a closed or broken connection: nobody is there to answer.
  return fail('service_unavailable', { retryAfter: 1 }, error);
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

function splitPayload(message: Msg): RawAnswer {
  const data = asBuffer(message.data);
  const attached = message.headers?.get(header.attached);
  if (!attached) return { json: data, bytes: undefined };
  const end = data.length - Number(attached);
  return { json: data.subarray(0, end), bytes: data.subarray(end) };
}

function readReply(message: Msg): RawAnswer {
  const code = message.headers?.get(header.error);
  if (!code) return splitPayload(message);
  const details = JSON.parse(asBuffer(message.data).toString('utf8')) as FailureDetails;
  throw fail(isErrorCode(code) ? code : 'internal', details);
}

export interface ServeOptions<C extends Contracts> {
  readonly bus: Bus;
  readonly contracts: C;
  readonly handlers: Handlers<C>;
  /** Confirms who a credential belongs to. Throws `invalid_agent_credential` or `invalid_owner_credential`. */
  readonly identify: (credential: Credential, context: RequestContext) => Promise<Caller>;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Requests under way at once in this process; one more is answered `overloaded`. */
  readonly limit: number;
  /** Called after each request, so that the outbox relay looks for what it wrote. */
  readonly onHandled?: () => void;
}

/** Serves a service's contracts in its queue group. Every handler is awaited; its input and output are checked. Answers how to stop: no new requests, then wait for those under way. */
export function serve<C extends Contracts>(options: ServeOptions<C>): { drain(): Promise<void> } {
  let underWay = 0;
  const measure = measureRequests(options.metrics, () => underWay);
  const subscriptions: Subscription[] = [];
  for (const [name, contract] of Object.entries(options.contracts)) {
    const handler = (options.handlers as Record<string, Handler<Contract>>)[name]!;
    const named = { ...contract, name };
    const answerRequest = async (message: Msg) => {
      if (underWay >= options.limit) return replyFailure(message, fail('overloaded', { retryAfter: 1 }));
      underWay += 1;
      try {
        await answer(message, named, handler, { ...options, ...measure });
      } finally {
        underWay -= 1;
        options.onHandled?.();
      }
    };
    subscriptions.push(options.bus.connection.subscribe(subjectOf(named), {
      queue: contract.service,
      callback: (error, message) => {
        if (error) options.log.error({ err: error, contract: name }, 'subscription failed');
        else void answerRequest(message);
      },
    }));
  }
  return {
    async drain() {
      await Promise.all(subscriptions.map((subscription) => subscription.drain()));
      while (underWay > 0) await sleep(10);
    },
  };
}

async function answer<C extends Contracts>(message: Msg, contract: Named, handler: Handler<Contract>, options: ServeOptions<C> & Measures): Promise<void> {
  const came = message.headers?.get(header.traceparent) ?? '';
  const requestId = message.headers?.get(header.requestId) ?? '';
  const log = options.log.child({ requestId, ...(came && { traceId: traceIdOf(came) }), contract: contract.name });
  const began = performance.now();
  const working = isLong(contract) ? sayWorking((headers) => message.respond(undefined, { headers })) : undefined;
  try {
    const isAnswered = await inStep(stepOf(contract, 'server', came), ({ traceparent = came }) => options.measured({ contract: contract.name }, () => work(message, { contract, handler, log, ids: { requestId, traceparent } }, options)));
    if (isAnswered) log.info({ ms: Math.round((performance.now() - began) * 10) / 10 }, 'answered');
  } catch (error) {
    const failure = error instanceof Failure ? error : fail('internal', {}, error);
    if (failure.code === 'internal') log.error({ err: error }, 'request failed');
    else log.info({ code: failure.code, ...(failure.cause instanceof Error && { cause: failure.cause.message }) }, 'request refused');
    replyFailure(message, failure);
  } finally {
    clearInterval(working);
  }
}

interface Measures {
  readonly measured: <T>(values: { contract: string }, work: () => Promise<T>) => Promise<T>;
  readonly countBytes: (values: { direction: string }, by: number) => void;
}

function measureRequests(metrics: Metrics, underWay: () => number): Measures {
  measureNow(metrics, { name: 'aex_rpc_requests_in_flight', help: 'Requests over NATS that this process is answering' }, underWay);
  return {
    measured: measureEach(metrics, { name: 'aex_rpc_request_seconds', help: 'Requests over NATS, as the service that answers sees them', labels: ['contract'] }),
    countBytes: count(metrics, { name: 'aex_rpc_attached_bytes_total', help: 'Bytes of small assets that came and went inside requests', labels: ['direction'] }),
  };
}

interface Work {
  readonly contract: Named;
  readonly handler: Handler<Contract>;
  readonly log: Logger;
  readonly ids: Pick<RequestContext, 'requestId' | 'traceparent'>;
}

/** Does what a request asks and answers it. False when nobody waits any more: doing the work would only add to an overload. */
async function work<C extends Contracts>(message: Msg, { contract, handler, log, ids }: Work, options: ServeOptions<C> & Measures): Promise<boolean> {
  const { json, bytes } = splitPayload(message);
  const envelope = JSON.parse(json.toString('utf8')) as Envelope;
  const context = readContext(message, envelope, ids);
  if (context.deadline <= Date.now()) return false;
  const input = parseInput(contract, envelope.input);
  const caller = await identifyCaller(contract, envelope.credential, context, options);
  const result = await handler(input as InputOf<Contract>, { ...context, caller, log, ...(bytes && { bytes }) });
  replyOutput(message, contract, result);
  if (bytes) options.countBytes({ direction: 'in' }, bytes.length);
  const sent = result[attachedBytes];
  if (sent) options.countBytes({ direction: 'out' }, sent.length);
  return true;
}

function readContext(message: Msg, envelope: Envelope, ids: Pick<RequestContext, 'requestId' | 'traceparent'>): RequestContext {
  return {
    ...ids,
    deadline: Number(message.headers?.get(header.deadline)) || Date.now() + defaultDeadlineMs,
    ...(envelope.address && { address: envelope.address }),
    ...(envelope.operationId && { operationId: envelope.operationId }),
    ...(envelope.credential && { credential: envelope.credential }),
  };
}

/** Checks an input against its contract. Unknown fields are refused; every bad field is named. */
export function parseInput(contract: Pick<Contract, 'input'>, input: unknown): unknown {
  const result = contract.input.safeParse(input);
  if (result.success) return result.data;
  const errors = result.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: [...issue.path, key].join('.'), message: 'unknown field' }))
      : [{ path: issue.path.join('.'), message: issue.message }],
  ).slice(0, 20);
  const first = errors[0]!;
  throw fail('invalid_request', { detail: first.path ? `${first.path}: ${first.message}` : first.message, errors });
}

async function identifyCaller<C extends Contracts>(contract: Contract, credential: Credential | undefined, context: RequestContext, options: ServeOptions<C>): Promise<Caller> {
  if (contract.accepts.length === 0) return { type: 'anonymous' };
  if (credential && !(contract.accepts as readonly string[]).includes(credential.kind)) {
    throw fail(contract.accepts.every((kind) => kind === 'owner_session') ? 'invalid_owner_credential' : 'invalid_agent_credential');
  }
  if (credential) return options.identify(credential, context);
  if (contract.required) throw fail(contract.required);
  return { type: 'anonymous' };
}

function replyOutput(message: Msg, contract: Named, result: object): void {
  const bytes = (result as { [attachedBytes]?: Uint8Array })[attachedBytes];
  const json = Buffer.from(JSON.stringify(contract.output.parse(result)));
  if (!bytes) {
    message.respond(json);
    return;
  }
  const headers = natsHeaders();
  headers.set(header.attached, String(bytes.length));
  message.respond(Buffer.concat([json, bytes]), { headers });
}

/** Only the code and its safe details cross to the caller; the cause stays in this service's log. */
function replyFailure(message: Msg, failure: Failure): void {
  const headers = natsHeaders();
  headers.set(header.error, failure.code);
  message.respond(Buffer.from(JSON.stringify(failure.details)), { headers });
}
