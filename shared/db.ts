/** The connection to a service's own schema: a deadline on every statement, and a pool that is replaced when it stalls. */
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import postgres from 'postgres';
import { fail, Failure } from './errors.ts';
import type { Logger } from './log.ts';
import { beginStep } from './tracing.ts';

/** The server ends a statement after this; the client stops waiting a little later, in case the server is gone. */
const statementTimeoutMs = 3_500;
const clientTimeoutMs = 4_000;
/** So many statements in a row past their deadline mean that the pool is stuck, not the statement. */
const stalledAfter = 3;

/** An array as PostgreSQL writes and reads it: every element in quotes. */
const array = {
  serialize: (items: string[]) => `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`,
  parse: (text: string) => [...text.matchAll(/"((?:[^"\\]|\\.)*)"|([^,{}]+)/g)].map(([, quoted, plain]) => quoted?.replace(/\\(.)/g, '$1') ?? plain!),
};

/**
 * The types we use beyond the driver's own. Sizes and counts are 64-bit in the database and stay exact as numbers up to 2^53.
 * Arrays of text and of ids are declared here because the driver would otherwise ask each new connection for all array types,
 * by a query that nothing awaits: a connection lost at that moment would end the process.
 */
const types = {
  bigint: { to: 20, from: [20], serialize: (value: number) => String(value), parse: (text: string) => Number(text) },
  texts: { to: 1009, from: [1009], ...array },
  uuids: { to: 2951, from: [2951], ...array },
};

export type Sql = postgres.Sql<{ bigint: number; texts: string[]; uuids: string[] }>;

/** The driver knows this option; its type declarations do not. */
interface PoolOptions extends postgres.Options<typeof types> {
  max_pipeline: number;
}
type Statement<T> = (sql: Sql) => PromiseLike<T>;

export interface Database {
  /**
   * Runs one statement. A state change is one statement, so there are no transactions to lose.
   * @throws service_unavailable when the database is away, deadline_exceeded when it does not answer in time.
   */
  run<T>(statement: Statement<T>): Promise<T>;
  /** Whether the database answers. */
  isReady(): Promise<boolean>;
  /** Applies the SQL files of a folder that were not applied before, in the order of their names. Safe to run from many replicas at once; waits for a database that is just starting. */
  migrate(folder: URL): Promise<void>;
  close(): Promise<void>;
}

/** PostgreSQL's own settings of every connection, by name. */
export type Parameters = Readonly<Record<string, string>>;

/** Opens the pool. Connections are made when first needed and made again when they break. */
export function openDatabase(url: string, poolSize: number, log: Logger, parameters: Parameters = {}): Database {
  let pool = openPool(url, poolSize, parameters);
  let stalled = 0;

  function replacePool(): void {
    log.error('the database pool stalled and is replaced');
    const old = pool;
    pool = openPool(url, poolSize, parameters);
    stalled = 0;
    old.end({ timeout: 0 }).catch(() => undefined);
  }

  async function run<T>(statement: Statement<T>): Promise<T> {
    const used = pool;
    const step = beginStep({ name: 'postgresql', kind: 'client', attributes: { 'db.system.name': 'postgresql' } });
    try {
      const result = await withTimeout(statement(used), clientTimeoutMs);
      stalled = 0;
      step.end(undefined, describeStatement(result));
      return result;
    } catch (error) {
      step.end(error);
      const failure = translateDatabaseError(error);
      if (failure instanceof Failure && failure.code === 'deadline_exceeded' && used === pool && ++stalled >= stalledAfter) replacePool();
      throw failure;
    }
  }

  return {
    run,
    isReady: () => run((sql) => sql`select 1`).then(() => true, () => false),
    migrate: (folder) => patiently(() => migrate(url, folder, log), log),
    close: () => pool.end({ timeout: 5 }),
  };
}

function openPool(url: string, max: number, parameters: Parameters): Sql {
  const options: PoolOptions = {
    max,
    types,
    fetch_types: false,
    // More than one statement in flight on a connection makes the driver's queue slow and its failures contagious.
    max_pipeline: 1,
    connect_timeout: 3,
    idle_timeout: 300,
    backoff: (attempt) => Math.min(0.1 * 2 ** attempt, 1),
    connection: { ...parameters, statement_timeout: statementTimeoutMs, application_name: 'asset-exchange' },
    onnotice: () => undefined,
  };
  return postgres(url, options);
}

/** A statement's text has its parameters as numbers, so no value of anybody's is in it. */
function describeStatement(result: unknown): Record<string, string> {
  const text = (result as { statement?: { string?: string } } | undefined)?.statement?.string?.replace(/\s+/g, ' ').trim();
  return text === undefined ? {} : { 'db.query.text': text.slice(0, 2_000) };
}

async function withTimeout<T>(work: PromiseLike<T>, milliseconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = globalThis.setTimeout(() => reject(fail('deadline_exceeded')), milliseconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The server going away, starting up, shutting down, or out of connections, or a table in use for longer than we wait; by the driver's codes and PostgreSQL's classes. */
const awayCodes = /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|ENOTFOUND|EAI_|ETIMEDOUT|08|57P0|53|55P03)/;

function translateDatabaseError(error: unknown): unknown {
  const code = (error as { code?: unknown }).code;
  if (typeof code !== 'string') return error;
  if (awayCodes.test(code)) return fail('service_unavailable', { retryAfter: 1 }, error);
  if (code === '57014') return fail('deadline_exceeded', {}, error);
  return error;
}

/** Whether a statement failed because a row of that key exists already. */
export function isDuplicate(error: unknown, constraint: string): boolean {
  const { code, constraint_name: name } = error as { code?: string; constraint_name?: string };
  return code === '23505' && name === constraint;
}

/** The database may start after us: half a minute of patience, then whoever started us decides. */
async function patiently(work: () => Promise<void>, log: Logger): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries === 30 || !(translateDatabaseError(error) instanceof Failure)) throw error;
      log.warn({ err: error }, 'the database could not be reached yet');
      await setTimeout(1_000);
    }
  }
}

/** Migrations have a connection of their own, without the deadlines of requests, and wait for each other by an advisory lock. */
async function migrate(url: string, folder: URL, log: Logger): Promise<void> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  const sql = postgres(url, { max: 1, onnotice: () => undefined, connect_timeout: 10 });
  try {
    await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(hashtext(current_user))`;
      // The version before us still serves: a change that waits for a table holds up everybody behind it, so it gives way and comes again.
      await tx`set local lock_timeout = '2s'`;
      await tx`create table if not exists migrations (name text primary key, applied_at timestamptz not null default now())`;
      const applied = new Set((await tx<{ name: string }[]>`select name from migrations`).map((row) => row.name));
      for (const name of files.filter((file) => !applied.has(file))) {
        await tx.unsafe(await readFile(new URL(name, folder), 'utf8'));
        await tx`insert into migrations (name) values (${name})`;
        log.info({ migration: name }, 'migration applied');
      }
    });
  } finally {
    await sql.end({ timeout: 5 });
  }
}
