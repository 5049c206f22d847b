// What each service may say and hear on NATS: read from the contracts and from the calls in its code, so that it is never more than the code needs.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { subjectOf, type Named } from '../../shared/contract.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import { healthContracts } from '../../shared/contracts/health.ts';
import { confirmSubject, eventStream } from '../../shared/events.ts';
import { inboxPrefix } from '../../shared/rpc.ts';

export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

const root = resolve(import.meta.dirname, '../..');
const contracts = Object.values(allContracts) as Named[];
/** The service that records events: the only one that touches the stream. */
const recorder = 'audit';
const consumer = `${eventStream}.${recorder}`;
const streamSubjects = [
  '$JS.API.INFO',
  ...['CREATE', 'INFO', 'UPDATE'].map((verb) => `$JS.API.STREAM.${verb}.${eventStream}`),
  ...['INFO', 'DELETE', 'MSG.NEXT', 'DURABLE.CREATE'].map((verb) => `$JS.API.CONSUMER.${verb}.${consumer}`),
  `$JS.API.CONSUMER.CREATE.${consumer}`, `$JS.API.CONSUMER.CREATE.${consumer}.>`,
  `$JS.ACK.${consumer}.>`,
];

/** Every service, in alphabetical order. */
export const services: readonly string[] = readdirSync(join(root, 'services')).filter((name) => existsSync(join(root, 'services', name, 'main.ts'))).sort();

/** What one service's connection needs, and nothing else. */
export function permissionsOf(service: string): Permissions {
  const callers = services.filter((each) => callsOf(each).some((contract) => contract.service === service));
  const emitters = services.filter(emitsEvents);
  const publish = [
    ...callsOf(service).map(subjectOf),
    ...callers.map((caller) => `${inboxPrefix(caller)}.>`),
    ...(emitters.includes(service) ? [`aex.evt.${service}.>`] : []),
    ...(service === recorder ? [...emitters.map((name) => `aex.confirm.${name}`), ...streamSubjects] : []),
  ];
  const serves = callers.length > 0 ? [`aex.rpc.${service}.>`] : [];
  const hears = emitters.includes(service) ? [confirmSubject(service as Parameters<typeof confirmSubject>[0])] : [];
  return { publish: [...new Set(publish)].sort(), subscribe: [...serves, ...hears, `${inboxPrefix(service)}.>`].sort() };
}

/** The contracts that a service calls. The gateway also calls whatever looks like something over HTTP, and asks for everybody's health. */
export function callsOf(service: string): Named[] {
  const named = [...sourcesOf(service).values()].flatMap(calledNames).map((name) => {
    const found = contracts.find((contract) => contract.name === name);
    if (!found) throw new Error(`${service} calls ${name}, which is no contract`);
    return found;
  });
  const mounted = service === 'gateway' ? [...contracts.filter(({ http }) => http), ...healthContracts] : [];
  return [...new Set([...named, ...mounted])];
}

/** `bus.call(shares.createShare, …` is a call of `createShare`; behind a variable is nothing but what the gateway mounts. */
function calledNames(source: string): string[] {
  return [...source.matchAll(/\b[bB]us\.call(?:Raw)?\(\s*\w+\.(\w+)/g)].map(([, name]) => name!);
}

function emitsEvents(service: string): boolean {
  return [...sourcesOf(service)].some(([path, source]) => path.startsWith('services/') && /\bstartRelay\(/.test(source));
}

/** Every file that a service runs, its own and the shared ones that it imports. Path -> text. */
function sourcesOf(service: string): Map<string, string> {
  const found = new Map<string, string>();
  const read = (path: string) => {
    if (found.has(path)) return;
    const source = readFileSync(join(root, path), 'utf8');
    found.set(path, source);
    for (const [, imported] of source.matchAll(/from '(\.[^']+\.ts)'/g)) read(join(dirname(path), imported!));
  };
  read(`services/${service}/main.ts`);
  return found;
}
