// The services of the embedded stack: in which order they start, and which settings each is given.
import { join } from 'node:path';
import { databaseAddress, databaseServices, rolePassword } from './postgres-roles.ts';
import type { OwnerAccount } from './secrets.ts';
import { SupervisedProcess } from './process.ts';

/** Variables for a child process. */
export type Environment = Record<string, string>;

/** The services that are started, in their order; the last group serves callers and stops first. */
export const serviceGroups: readonly (readonly string[])[] = [['policy', 'storage', 'audit', 'importer'], ['gateway']];

// It speaks to whatever server a caller names: it gets no more than its work needs.
const exposed = 'importer';

/** What the services' settings follow from. */
export interface ServiceSettings {
  dataDir: string;
  host: string;
  port: number;
  baseUrl: string;
  logLevel: string;
  natsUrl: string;
  postgresPort: number;
  secret: string;
  owner: OwnerAccount;
}

// A person's own variables reach every service, but never these: each is for some services only, or tells
// a service about a database, a secret or an address that is not of this stack.
const owned = ['NATS_URL', 'AEX_SECRET', 'BASE_URL', 'DATABASE_URL', 'HOST', 'PORT', 'BLOB_DRIVER', 'BLOB_ROOT', 'DIRECT_LANE', 'FIRST_OWNER_EMAIL', 'FIRST_OWNER_PASSWORD'];

/** The whole environment of one service: the person's own, the contract's settings, then `extra`. */
export function serviceEnvironment(name: string, settings: ServiceSettings, extra: Environment): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([key]) => !owned.includes(key) && !key.startsWith('S3_'));
  return { ...Object.fromEntries(inherited), ...contractSettings(name, settings), AEX_EXIT_WITH_PARENT: '1', ...extra };
}

function contractSettings(name: string, settings: ServiceSettings): Environment {
  const common = { NATS_URL: settings.natsUrl, LOG_LEVEL: settings.logLevel, ...(name !== exposed && { BASE_URL: settings.baseUrl }) };
  const directLane = { DIRECT_LANE: process.env['DIRECT_LANE'] || (storeSettings()['BLOB_DRIVER'] === 's3' ? 'on' : 'off') };
  const blobRoot = { BLOB_ROOT: join(settings.dataDir, 'blobs') };
  const own: Record<string, Environment> = {
    gateway: { HOST: settings.host, PORT: String(settings.port), ...blobRoot },
    storage: { ...storeSettings(), ...directLane, ...blobRoot },
    importer: blobRoot,
    policy: { ...directLane, FIRST_OWNER_EMAIL: settings.owner.email, FIRST_OWNER_PASSWORD: settings.owner.password },
  };
  return { ...common, ...databaseSettings(name, settings), ...own[name] };
}

// A person may have the bytes in an object store. Its credentials are storage's alone.
function storeSettings(): Environment {
  const given = Object.entries(process.env).filter((entry): entry is [string, string] => entry[0].startsWith('S3_') && Boolean(entry[1]));
  return { BLOB_DRIVER: process.env['BLOB_DRIVER'] || 'fs', ...Object.fromEntries(given) };
}

// The services that keep rows are also the ones that make and check tokens, all but the exposed one.
function databaseSettings(name: string, { secret, postgresPort }: ServiceSettings): Environment {
  if (!databaseServices.some((each) => each === name)) return {};
  return { ...(name !== exposed && { AEX_SECRET: secret }), DATABASE_URL: databaseAddress(name, rolePassword(secret, name), postgresPort) };
}

/** A service as a process of its own, not started yet; it is ready when it says so in its log. */
export function makeService(options: {
  name: string;
  /** What this process of it is called. */
  process: string;
  /** The project's folder, in which services run. */
  root: string;
  servicesDir: string;
  dataDir: string;
  env: NodeJS.ProcessEnv;
  report: (line: string) => void;
}): SupervisedProcess {
  const { name, dataDir, servicesDir } = options;
  return new SupervisedProcess({
    name: options.process,
    command: { file: process.execPath, args: [join(servicesDir, name, 'main.ts')], cwd: options.root, env: options.env },
    outputPath: join(dataDir, 'logs', `${options.process}.log`),
    errorPath: join(dataDir, 'logs', `${options.process}.errors.log`),
    isReady: (output) => output.includes('"msg":"ready"'),
    readyWithinMs: 30_000,
    attempts: 3,
    stopSignal: 'SIGTERM',
    stopWithinMs: 10_000,
    report: options.report,
  });
}
