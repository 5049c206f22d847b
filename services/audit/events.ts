/** The recorder: takes every service's events from the stream, stores them, and tells the service that they are safe (interface chapter: Events). */
import { setTimeout } from 'node:timers/promises';
import { AckPolicy, DeliverPolicy, nanos, type Consumer, type ConsumerConfig, type ConsumerMessages, type JsMsg } from 'nats';
import type { ServiceName } from '../../shared/contract.ts';
import { confirmSubject, eventStream } from '../../shared/events.ts';
import type { Logger } from '../../shared/log.ts';
import { measureNow, type Metrics } from '../../shared/metrics.ts';
import { ensureEventStream } from '../../shared/outbox.ts';
import type { Bus } from '../../shared/rpc.ts';
import { readMessage, type EventMessage } from './domain/message.ts';
import { gathered } from './gathered.ts';
import { isRefusedForGood, type EventStore } from './store/events.ts';

const durable = 'audit';
const fetchSize = 500;
const fetchMs = 5_000;
const ackWaitMs = 30_000;
const backOffMs = 500;
/** An unrecorded message is asked for again after this, rather than after the whole wait for its ack. */
const againMs = 1_000;
/** So many fetches in a row that came back empty although events wait mean that the consumer is stuck. */
const stalledAfter = 2;

const consumerConfig: Partial<ConsumerConfig> = {
  durable_name: durable,
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(ackWaitMs),
  deliver_policy: DeliverPolicy.All,
  filter_subject: 'aex.evt.>',
  max_ack_pending: 10 * fetchSize,
};

interface Deps {
  readonly bus: Bus;
  readonly store: Pick<EventStore, 'recordEvents'>;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** How many servers of a NATS cluster keep the stream. */
  readonly replicas: number;
}

interface Delivery extends EventMessage {
  readonly message: JsMsg;
}

export interface Recorder {
  /** Finishes what was taken, and takes no more. */
  stop(): Promise<void>;
}

/** Starts recording, for ever: whatever fails is logged, and stream and consumer are made anew. Any number of replicas share the consumer. */
export function startRecorder(deps: Deps): Recorder {
  const stopping = new AbortController();
  measureLag(deps);
  const recording = recordForEver(deps, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await recording;
    },
  };
}

/** What waits in the stream, as NATS knows it: the same for every replica. */
function measureLag({ bus, metrics }: Deps): void {
  const info = async () => (await bus.connection.jetstreamManager()).consumers.info(eventStream, durable);
  measureNow(metrics, { name: 'aex_events_waiting', help: 'Events in the stream that audit has not been given yet' }, async () => (await info()).num_pending);
  measureNow(metrics, { name: 'aex_events_unacknowledged', help: 'Events that audit was given and has not recorded yet' }, async () => (await info()).num_ack_pending);
}

async function recordForEver(deps: Deps, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    try {
      await recordUntilBroken(deps, await bindConsumer(deps), stopping);
    } catch (error) {
      if (stopping.aborted) return;
      deps.log.warn({ err: error }, 'recording pauses');
      await setTimeout(backOffMs, undefined, { signal: stopping }).catch(() => undefined);
    }
  }
}

/** Makes the stream and the consumer when they are absent. A consumer that is there may have been made by `replaceConsumer`, so it stays as it is. */
async function bindConsumer({ bus, replicas }: Deps): Promise<Consumer> {
  await ensureEventStream(bus.connection, replicas);
  const manager = await bus.connection.jetstreamManager();
  await manager.consumers.info(eventStream, durable).catch(() => manager.consumers.add(eventStream, consumerConfig));
  return bus.connection.jetstream().consumers.get(eventStream, durable);
}

async function recordUntilBroken(deps: Deps, consumer: Consumer, stopping: AbortSignal): Promise<void> {
  let stalled = 0;
  while (!stopping.aborted) {
    const taken = await recordFetch(deps, consumer, stopping);
    if (taken > 0 || stopping.aborted) {
      stalled = 0;
      continue;
    }
    // Nothing came. Asking fails when stream or consumer are gone, and shows whether events wait all the same.
    const { num_pending: waiting, num_ack_pending: unacked } = await consumer.info();
    stalled = waiting > 0 && unacked < consumerConfig.max_ack_pending! ? stalled + 1 : 0;
    if (stalled >= stalledAfter) await replaceConsumer(deps, consumer);
  }
}

/** A new consumer begins after the last event of which all before are recorded; meeting some twice does no harm. */
async function replaceConsumer({ bus, log }: Deps, consumer: Consumer): Promise<never> {
  const { ack_floor: floor } = await consumer.info();
  log.error({ floor: floor.stream_seq }, 'the consumer of events stalled and is replaced');
  const manager = await bus.connection.jetstreamManager();
  await consumer.delete();
  await manager.consumers.add(eventStream, { ...consumerConfig, deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: floor.stream_seq + 1 });
  throw new Error('the consumer was replaced');
}

/** Records what one fetch brings, in as few statements as the database keeps up with. Answers how many messages came. */
async function recordFetch(deps: Deps, consumer: Consumer, stopping: AbortSignal): Promise<number> {
  const messages: ConsumerMessages = await consumer.fetch({ max_messages: fetchSize, expires: fetchMs });
  const close = () => void messages.close();
  stopping.addEventListener('abort', close, { once: true });
  let taken = 0;
  try {
    for await (const batch of gathered(messages)) {
      taken += batch.length;
      await recordBatch(deps, batch);
    }
  } finally {
    stopping.removeEventListener('abort', close);
  }
  return taken;
}

async function recordBatch(deps: Deps, messages: readonly JsMsg[]): Promise<void> {
  const deliveries = messages.flatMap((message) => readDelivery(message, deps.log));
  if (deliveries.length === 0) return;
  try {
    await recordAll(deps, deliveries);
  } catch (error) {
    deps.log.warn({ err: error, events: deliveries.length }, 'events could not be recorded and come again');
    for (const { message } of deliveries) message.nak(againMs);
    await setTimeout(backOffMs);
  }
}

function readDelivery(message: JsMsg, log: Logger): Delivery[] {
  const read = readMessage(message.string());
  if (!('problem' in read)) return [{ ...read, message }];
  log.error({ subject: message.subject, sequence: message.seq, problem: read.problem }, 'a message that is no event was thrown away');
  message.term();
  return [];
}

/** Stores, then acknowledges and confirms, also what was stored before: its first confirmation may have been lost. */
async function recordAll(deps: Deps, deliveries: readonly Delivery[]): Promise<void> {
  try {
    await deps.store.recordEvents(deliveries.map((delivery) => delivery.event));
  } catch (error) {
    if (!isRefusedForGood(error)) throw error;
    return recordOneByOne(deps, deliveries, error);
  }
  for (const { message } of deliveries) message.ack();
  confirm(deps.bus, deliveries);
}

/** One event that the database will never take must not hold up the others. It stays in its outbox, and in this log. */
async function recordOneByOne(deps: Deps, deliveries: readonly Delivery[], error: unknown): Promise<void> {
  if (deliveries.length > 1) {
    for (const delivery of deliveries) await recordAll(deps, [delivery]);
    return;
  }
  for (const { event, message } of deliveries) {
    deps.log.error({ err: error, eventId: event.id, eventType: event.eventType }, 'an event that cannot be stored was thrown away');
    message.term();
  }
}

function confirm(bus: Bus, deliveries: readonly Delivery[]): void {
  const ids = new Map<ServiceName, string[]>();
  for (const { service, event } of deliveries) {
    if (service) ids.set(service, [...(ids.get(service) ?? []), event.id]);
  }
  for (const [service, own] of ids) bus.connection.publish(confirmSubject(service), JSON.stringify(own));
}
