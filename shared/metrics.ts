/** What a process counts and measures of itself, for Prometheus. docs/metrics.md lists every name; a test holds both together. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Database } from './db.ts';
import { errorCodeOf } from './errors.ts';

export type Metrics = Registry;

/** Seconds: from a small request on an idle machine to the longest call. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
/** The database is asked for its outbox at most this often, however many look. */
const freshMs = 5_000;
/** More rows than this are not counted: a scrape must not become a scan. */
const countedRows = 100_000;

/** Begins to measure a process: its memory, its processor time, its garbage and the delay of its event loop. */
export function makeMetrics(service: string): Metrics {
  const metrics = new Registry();
  metrics.setDefaultLabels({ service });
  collectDefaultMetrics({ register: metrics });
  return metrics;
}

/** How long each of something takes, and how it ends: `ok` or a code of the error table. The count of it is the rate. */
export function measureEach<L extends string>(metrics: Metrics, { name, help, labels }: { name: string; help: string; labels: readonly L[] }) {
  const histogram = new Histogram({ name, help, labelNames: [...labels, 'outcome'], buckets, registers: [metrics] });
  return async function measured<T>(values: Readonly<Record<L, string>>, work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const end = (outcome: string) => histogram.observe({ ...values, outcome }, (performance.now() - began) / 1_000);
    try {
      const result = await work();
      end('ok');
      return result;
    } catch (error) {
      end(errorCodeOf(error));
      throw error;
    }
  };
}

/** A number that is read when somebody looks. While it cannot be read there is none. */
export function measureNow(metrics: Metrics, { name, help }: { name: string; help: string }, read: () => number | undefined | Promise<number | undefined>): void {
  const gauge: Gauge = new Gauge({
    name, help, registers: [metrics],
    async collect() {
      const value = await Promise.resolve().then(read).catch(() => undefined);
      if (value === undefined) gauge.reset();
      else gauge.set(value);
    },
  });
}

/** Counts. */
export function count<L extends string>(metrics: Metrics, { name, help, labels }: { name: string; help: string; labels: readonly L[] }): (values: Readonly<Record<L, string>>, by?: number) => void {
  const counter = new Counter({ name, help, labelNames: [...labels], registers: [metrics] });
  return (values, by = 1) => counter.inc(values, by);
}

/** The same database, each statement measured. */
export function measureDatabase(database: Database, poolSize: number, metrics: Metrics): Database {
  const measured = measureEach(metrics, { name: 'aex_db_statement_seconds', help: 'Statements: from the moment they want a connection to their answer', labels: [] });
  let underWay = 0;
  measureNow(metrics, { name: 'aex_db_statements_in_flight', help: 'Statements that run, or wait for a connection' }, () => underWay);
  measureNow(metrics, { name: 'aex_db_pool_size', help: 'Connections that the process has at most' }, () => poolSize);
  return {
    ...database,
    run: (statement) => measured({}, () => {
      underWay += 1;
      return database.run(statement).finally(() => { underWay -= 1; });
    }),
  };
}

/** Depth and age of a service's outbox: what audit has not confirmed yet. */
export function measureOutbox(database: Pick<Database, 'run'>, metrics: Metrics): void {
  let latest: { at: number; read: Promise<{ depth: number; age: number }> } | undefined;
  const read = () => {
    if (!latest || Date.now() - latest.at > freshMs) latest = { at: Date.now(), read: readOutbox(database) };
    return latest.read;
  };
  measureNow(metrics, { name: 'aex_outbox_events', help: `Events that audit has not confirmed; ${countedRows} stands for more` }, async () => (await read()).depth);
  measureNow(metrics, { name: 'aex_outbox_oldest_seconds', help: 'Age of the event that has waited longest among those due first' }, async () => (await read()).age);
}

async function readOutbox(database: Pick<Database, 'run'>): Promise<{ depth: number; age: number }> {
  const rows = await database.run((sql) => sql<{ depth: number; age: number }[]>`
    select
      (select count(*) from (select from outbox limit ${countedRows}) counted) as depth,
      coalesce((select extract(epoch from now() - min((event->>'occurredAt')::timestamptz)) from (select event from outbox order by send_after limit 100) first), 0)::float8 as age`);
  return rows[0]!;
}
