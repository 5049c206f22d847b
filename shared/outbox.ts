/** The relay from a service's outbox table to JetStream. A row goes only when audit confirmed that it holds the event. */
import { setTimeout as sleep } from 'node:timers/promises';
import { headers as natsHeaders, RetentionPolicy, StorageType, type NatsConnection } from 'nats';
import type { ServiceName } from './contract.ts';
import type { Database, Sql } from './db.ts';
import { confirmSubject, eventStream, eventSubject, toCloudEvent, type DomainEvent } from './events.ts';
import type { Logger } from './log.ts';
import type { Bus } from './rpc.ts';

/** How many events are on their way to JetStream at once. */
const batchSize = 500;
const pollMs = 1_000;
const publishTimeoutMs = 5_000;
const confirmTries = 5;
const confirmAgainMs = 250;
const second = 1_000_000_000;
const day = 86_400 * second;
/** Shorter than the time until a row is sent again: within this window JetStream throws away what it was sent before, and audit would never see it. */
const duplicateWindow = 20 * second;
/** JetStream's code for a stream of that name with other settings. */
const streamNameInUse = 10_058;

/**
 * The table that every service with events makes in its first migration:
 * outbox (id uuid primary key, event jsonb, attempts int default 0, send_after timestamptz default now()), indexed by send_after.
 * A row is sent again after 30 s, then at doubling intervals up to 10 minutes, until it is confirmed.
 */
interface OutboxRow {
  readonly event: DomainEvent;
}

export interface EventRelay {
  /** Says that a statement may have written events. */
  wake(): void;
  /** Publishes an event of something that changed nothing. Dropped while NATS is away: there is no change to lose. */
  publish(event: DomainEvent): void;
  close(): Promise<void>;
}

/** Starts relaying. Any number of replicas may: rows are claimed with SKIP LOCKED. */
export function startRelay(bus: Bus, database: Database, service: ServiceName, log: Logger): EventRelay {
  const jetstream = bus.connection.jetstream({ timeout: publishTimeoutMs });
  let running: Promise<void> | undefined;
  let wanted = false;
  let closed = false;

  async function publishDurably({ event }: OutboxRow): Promise<string | undefined> {
    const data = JSON.stringify(toCloudEvent(service, event));
    try {
      await jetstream.publish(eventSubject(service, event.eventType), data, { msgID: event.id });
      return undefined;
    } catch {
      return event.id;
    }
  }

  /** Sends one batch. Answers whether there may be more. */
  async function relayBatch(): Promise<boolean> {
    const rows = await database.run((sql) => claim(sql));
    const failed = (await Promise.all(rows.map(publishDurably))).filter((id) => id !== undefined);
    if (failed.length > 0) {
      log.warn({ failed: failed.length }, 'events could not be published and are tried again');
      await database.run((sql) => sql`update outbox set send_after = now() + interval '1 second' where id = any(${failed})`);
      return false;
    }
    return rows.length === batchSize;
  }

  async function relay(): Promise<void> {
    do {
      wanted = false;
      while (!closed && bus.isConnected() && (await relayBatch())) { /* until a batch is not full */ }
    } while (wanted && !closed);
  }

  function wake(): void {
    wanted = true;
    if (closed || running) return;
    running = relay()
      .catch((error: unknown) => log.warn({ err: error }, 'the outbox relay pauses'))
      .finally(() => { running = undefined; });
  }

  const poll = setInterval(wake, pollMs);
  const confirmations = bus.connection.subscribe(confirmSubject(service), {
    queue: service,
    callback: (error, message) => {
      if (!error) void confirm(database, message.json<string[]>(), log);
    },
  });

  return {
    wake,
    publish(event) {
      if (!bus.isConnected()) return;
      const headers = natsHeaders();
      headers.set('Nats-Msg-Id', event.id);
      bus.connection.publish(eventSubject(service, event.eventType), JSON.stringify(toCloudEvent(service, event)), { headers });
    },
    async close() {
      closed = true;
      clearInterval(poll);
      await running;
      // What audit has said so far is written down; otherwise it would be sent, and said, again.
      await confirmations.drain().catch(() => undefined);
    },
  };
}

/** Takes due rows for sending; another replica skips them until they are due again. */
function claim(sql: Sql): PromiseLike<OutboxRow[]> {
  return sql<OutboxRow[]>`
    update outbox set attempts = attempts + 1, send_after = now() + least(interval '30 seconds' * 2 ^ least(attempts, 10), interval '10 minutes')
    where id in (select id from outbox where send_after <= now() order by send_after limit ${batchSize} for update skip locked)
    returning event`;
}

/** Deletes what audit holds. While the database is away this is tried again; after that the row is sent again and confirmed again. */
async function confirm(database: Database, ids: readonly string[], log: Logger): Promise<void> {
  for (let tries = 1; tries <= confirmTries; tries += 1) {
    try {
      await database.run((sql) => sql`delete from outbox where id = any(${ids as string[]})`);
      return;
    } catch (error) {
      log.warn({ err: error, tries }, 'a confirmation could not be recorded yet');
      await sleep(confirmAgainMs * 2 ** tries);
    }
  }
}

/** Makes the event stream when it is absent. Postgres is the truth and the stream the transport, so its bounds may drop what is old. */
export async function ensureEventStream(connection: NatsConnection, replicas: number): Promise<void> {
  const manager = await connection.jetstreamManager({ timeout: publishTimeoutMs });
  const config = {
    name: eventStream,
    subjects: ['aex.evt.>'],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    max_age: 7 * day,
    max_bytes: 2 * 1024 ** 3,
    duplicate_window: duplicateWindow,
    num_replicas: replicas,
  };
  // Adding a stream that exists with the same settings changes nothing; with others it is refused, and updated instead.
  await manager.streams.add(config).catch((error: { api_error?: { err_code?: number } }) => {
    if (error.api_error?.err_code !== streamNameInUse) throw error;
    return manager.streams.update(eventStream, config);
  });
}
