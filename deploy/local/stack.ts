// Starts and stops the whole system on one machine: PostgreSQL, NATS and the services, from one data folder.
import { realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { openDataFolder, type DataFolder } from './data-folder.ts';
import { checkPort, findFreePort } from './free-port.ts';
import { externalNats, startNats, type Nats } from './nats.ts';
import { databaseAddress, rolePassword } from './postgres-roles.ts';
import { startPostgres, type Postgres } from './postgres.ts';
import type { SupervisedProcess } from './process.ts';
import { keepOwner, keepSecret, type OwnerAccount } from './secrets.ts';
import { makeService, serviceEnvironment, serviceGroups, type Environment, type ServiceSettings } from './services.ts';

const root = resolve(import.meta.dirname, '../..');
// A stack whose launcher was killed may still be serving its last requests.
const abandonedPatienceMs = 12_000;

/** What a stack is started with. */
export interface StackOptions {
  dataDir: string;
  /** The gateway's port; 0 picks a free one. */
  port: number;
  /** The address that the gateway listens on; 127.0.0.1 when not given. */
  host?: string;
  /** The address that callers use; `http://localhost:<port>` when not given. */
  baseUrl?: string;
  /** A NATS server to use instead of one of our own. */
  natsUrl?: string;
  /** More variables for a service, by its name, or for `all`. */
  env?: Record<string, Environment>;
  logLevel?: string;
  /** Which services to start; all of them when not given. */
  services?: readonly string[];
  servicesDir?: string;
  /** Told in one line what is being done, and what crashed. */
  progress?: (line: string) => void;
  quiet?: boolean;
  /** Ends the start, and everything that it started, when aborted. */
  signal?: AbortSignal;
}

/** A running system. */
export interface Stack {
  baseUrl: string;
  owner: OwnerAccount;
  /** The administrator's address of the database. */
  databaseUrl: string;
  /** The address that a service of this name is given. */
  databaseUrlOf: (service: string) => string;
  natsUrl: string;
  dataDir: string;
  services: Record<string, SupervisedProcess>;
  postgres: Postgres;
  nats: Nats;
  /** Another process of a service, beside the first and with its settings but for `env`; not started, and stopped with the rest. */
  addReplica: (service: string, env?: Environment) => SupervisedProcess;
  /** Ends everything: callers' side first, the database last. */
  stop: () => Promise<void>;
}

/** Starts a system and resolves when it serves; on any failure nothing is left running. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const signal = options.signal ?? new AbortController().signal;
  signal.throwIfAborted();
  const folder = await openDataFolder(resolve(options.dataDir));
  try {
    return await startIn(folder, options, signal);
  } catch (error) {
    await folder.release();
    throw error;
  }
}

async function startIn(folder: DataFolder, options: StackOptions, signal: AbortSignal): Promise<Stack> {
  const report = options.quiet ? () => undefined : (options.progress ?? (() => undefined));
  const dataDir = await realpath(folder.path);
  const host = options.host ?? '127.0.0.1';
  const port = options.port || (await findFreePort());
  await checkPort(host, port, folder.wasAbandoned ? abandonedPatienceMs : 0);
  const baseUrl = options.baseUrl ?? `http://localhost:${port}`;
  const secret = await keepSecret(join(dataDir, 'secret'));
  const owner = await keepOwner(dataDir, baseUrl);
  const { postgres, nats } = await startFoundations({ dataDir, secret, natsUrl: options.natsUrl, report, signal });
  const logLevel = options.logLevel ?? process.env['LOG_LEVEL'] ?? 'info';
  const settings = { dataDir, host, port, baseUrl, logLevel, natsUrl: nats.url, postgresPort: postgres.port, secret, owner };
  const { services, addReplica } = makeServices(settings, options, report);
  const stop = once(async () => {
    await stopServices(services);
    await Promise.all([nats.stop(), postgres.stop()]);
    await folder.release();
  });
  await startServices(services, report, signal).catch((error: unknown) => stop().then(() => Promise.reject(error)));
  const databaseUrlOf = (service: string) => databaseAddress(service, rolePassword(secret, service), postgres.port);
  return { baseUrl, owner, databaseUrl: postgres.url, databaseUrlOf, natsUrl: nats.url, dataDir, services, addReplica, postgres, nats, stop };
}

async function startFoundations(options: {
  dataDir: string;
  secret: string;
  natsUrl: string | undefined;
  report: (line: string) => void;
  signal: AbortSignal;
}): Promise<{ postgres: Postgres; nats: Nats }> {
  const { dataDir, natsUrl, report } = options;
  report(natsUrl ? 'Starting PostgreSQL…' : 'Starting PostgreSQL and NATS…');
  // The one that fails ends the other's start, which may be a long download.
  const failed = new AbortController();
  const signal = AbortSignal.any([options.signal, failed.signal]);
  const abortOther = (error: unknown) => {
    failed.abort(error);
    throw error;
  };
  const folders = [join(root, 'node_modules/.cache/asset-exchange'), join(dataDir, 'bin')];
  const [postgres, nats] = await Promise.allSettled([
    startPostgres({ ...options, signal }).catch(abortOther),
    natsUrl ? externalNats(natsUrl) : startNats({ ...options, folders, signal }).catch(abortOther),
  ]);
  if (postgres.status === 'fulfilled' && nats.status === 'fulfilled') return { postgres: postgres.value, nats: nats.value };
  if (postgres.status === 'fulfilled') await postgres.value.stop();
  if (nats.status === 'fulfilled') await nats.value.stop();
  options.signal.throwIfAborted();
  throw failed.signal.reason;
}

function makeServices(settings: ServiceSettings, options: StackOptions, report: (line: string) => void): Pick<Stack, 'services' | 'addReplica'> {
  const { dataDir } = settings;
  const servicesDir = resolve(options.servicesDir ?? join(root, 'services'));
  const names = options.services ?? serviceGroups.flat();
  const make = (name: string, more: Environment = {}, process = name) => {
    const env = serviceEnvironment(name, settings, { ...options.env?.['all'], ...options.env?.[name], ...more });
    return makeService({ name, process, root, servicesDir, dataDir, env, report });
  };
  const services = Object.fromEntries(names.map((name) => [name, make(name)]));
  const addReplica = (name: string, env?: Environment) => {
    const process = `${name}-${Object.values(services).filter((each) => each.name.startsWith(name)).length + 1}`;
    return (services[process] = make(name, env, process));
  };
  return { services, addReplica };
}

async function startServices(services: Record<string, SupervisedProcess>, report: (line: string) => void, signal: AbortSignal): Promise<void> {
  const halt = () => void stopServices(services);
  signal.addEventListener('abort', halt);
  try {
    for (const group of inGroups(services)) {
      signal.throwIfAborted();
      report(`Starting ${group.map((service) => service.name).join(', ')}…`);
      await Promise.all(group.map((service) => service.start()));
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener('abort', halt);
  }
}

async function stopServices(services: Record<string, SupervisedProcess>): Promise<void> {
  for (const group of inGroups(services).reverse()) await Promise.all(group.map((service) => service.stop()));
}

function inGroups(services: Record<string, SupervisedProcess>): SupervisedProcess[][] {
  const groups = serviceGroups.map((names) => names.flatMap((name) => services[name] ?? []));
  const others = Object.values(services).filter((service) => !serviceGroups.flat().includes(service.name));
  return [others, ...groups].filter((group) => group.length > 0);
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}
