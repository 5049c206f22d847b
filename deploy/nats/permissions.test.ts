/** Each service's user at a real nats-server: what the code needs is allowed, and nothing else. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connect, type NatsConnection } from 'nats';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { subjectOf, type Named } from '../../shared/contract.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import { eventOfService, eventSubject, toCloudEvent } from '../../shared/events.ts';
import { makeMetrics } from '../../shared/metrics.ts';
import { connectBus, inboxPrefix } from '../../shared/rpc.ts';
import { startRecorder } from '../../services/audit/events.ts';
import { sourceFiles } from '../../tests/support/source-files.ts';
import { findFreePort } from '../local/free-port.ts';
import { findNatsServer, natsVersion } from '../local/nats-binary.ts';
import { authorizationFiles } from './authorization.ts';
import { callsOf, services } from './permissions.ts';

const root = resolve(import.meta.dirname, '../..');
const contracts = Object.values(allContracts) as Named[];
const log = pino({ level: 'silent' });
const passwordOf = (service: string) => `password-of-${service}`;
const connections: Record<string, NatsConnection> = {};
let folder: string;
let server: ChildProcess;
let port: number;

const open = (service: string) => connect({ servers: `127.0.0.1:${port}`, user: service, pass: passwordOf(service), inboxPrefix: inboxPrefix(service), waitOnFirstConnect: true, reconnectTimeWait: 50 });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aex-nats-'));
  port = await findFreePort();
  const program = await findNatsServer({ folders: [join(root, 'node_modules/.cache/asset-exchange')], report: () => undefined, signal: new AbortController().signal });
  const [major = 0, minor = 0] = await natsVersion(program);
  const configuration = (await readFile(join(root, 'deploy/nats/nats.conf'), 'utf8'))
    .replace('port: 4222', `listen: "127.0.0.1:${port}"`).replace(/^http: .*$/m, '').replace('/data/jetstream', folder)
    // Older servers take the setting for a mistake.
    .replace(/^.*sync_interval.*$/m, (line) => (major > 2 || minor >= 10 ? line : ''));
  await writeFile(join(folder, 'nats.conf'), configuration);
  await writeFile(join(folder, 'authorization.conf'), authorizationFiles()['deploy/nats/authorization.conf']!);
  const env = Object.fromEntries(services.map((service) => [`NATS_PASSWORD_${service.toUpperCase()}`, passwordOf(service)]));
  server = spawn(program, ['-c', join(folder, 'nats.conf')], { env, stdio: 'ignore' });
  for (const service of services) {
    const connection = await open(service);
    connections[service] = connection;
    if (contracts.some((contract) => contract.service === service)) connection.subscribe(`aex.rpc.${service}.>`, { queue: service, callback: (_error, message) => void message.respond('answer') });
    await connection.flush();
  }
});

afterAll(async () => {
  await Promise.all(Object.values(connections).map((connection) => connection.close()));
  server.kill();
  await rm(folder, { recursive: true, force: true });
});

/** What the server says to a request or a subscription that it refuses. */
const refused = expect.objectContaining({ code: 'PERMISSIONS_VIOLATION' });

describe('the configuration', () => {
  test.each(Object.entries(authorizationFiles()))('%s is what the code needs; `node deploy/nats/authorization.ts` writes it anew', async (path, text) => {
    expect(await readFile(join(root, path), 'utf8')).toBe(text);
  });

  test('knows what is behind every call: only the gateway calls by a variable', () => {
    const unknown = sourceFiles('services', 'shared').filter(({ path }) => !/^services\/gateway\/|\.test\.ts$|^shared\/rpc\.ts$/.test(path))
      .filter(({ text }) => /\b[bB]us\.call(?:Raw)?\((?!\s*\w+\.\w+,)/.test(text));
    expect(unknown.map(({ path }) => path)).toEqual([]);
  });
});

describe('a service', () => {
  test.each(services)('%s reaches every contract that it calls', async (service) => {
    for (const contract of callsOf(service)) {
      const answer = await connections[service]!.request(subjectOf(contract), '', { timeout: 2_000 });
      expect(answer.string()).toBe('answer');
    }
  });

  test.each(services)('%s reaches no contract that it does not call', async (service) => {
    const called = callsOf(service).map(subjectOf);
    const others = contracts.map(subjectOf).filter((subject) => !called.includes(subject));
    expect(others.length).toBeGreaterThan(0);
    const connection = await open(service);
    for (const subject of others) await expect(connection.request(subject, '', { timeout: 2_000 })).rejects.toEqual(refused);
    await connection.close();
  });

  test.each(services)('%s hears no other’s requests, answers and events', async (service) => {
    const connection = await open(service);
    const others = services.filter((each) => each !== service);
    for (const subject of ['>', 'aex.evt.>', '$JS.>', ...others.flatMap((other) => [`aex.rpc.${other}.>`, `${inboxPrefix(other)}.>`, `aex.confirm.${other}`])]) {
      const answer = new Promise((settle) => { connection.subscribe(subject, { callback: (error) => settle(error) }); });
      expect(await answer).toEqual(refused);
    }
    await connection.close();
  });

  test.each(services.filter((service) => service !== 'audit'))('%s cannot confirm events, nor speak for another, nor touch the stream', async (service) => {
    const connection = await open(service);
    const others = services.filter((each) => each !== service);
    for (const subject of ['aex.confirm.policy', '$JS.API.STREAM.DELETE.AEX_EVENTS', '$JS.API.INFO', ...others.map((other) => `aex.evt.${other}.share.created`)]) {
      await expect(connection.request(subject, '', { timeout: 2_000 })).rejects.toEqual(refused);
    }
    await connection.close();
  });
});

test('an event goes through the stream to audit, and its confirmation back', async () => {
  const bus = await connectBus(`nats://audit:${passwordOf('audit')}@127.0.0.1:${port}`, 'audit', log);
  const recorded: string[] = [];
  const recorder = startRecorder({ bus, log, metrics: makeMetrics('test'), replicas: 1, store: { recordEvents: async (events) => recorded.push(...events.map(({ id }) => id)) } });
  const event = eventOfService('policy', Date.now(), { eventType: 'share.expired', targetType: 'share', targetId: 'shr_1' });
  const policy = connections['policy']!;
  const confirmed = new Promise<string[]>((settle) => { policy.subscribe('aex.confirm.policy', { queue: 'policy', callback: (_error, message) => settle(message.json<string[]>()) }); });
  await expect.poll(() => policy.jetstream().publish(eventSubject('policy', event.eventType), JSON.stringify(toCloudEvent('policy', event)), { msgID: event.id }).then(() => true, () => false), { timeout: 10_000 }).toBe(true);
  expect(await confirmed).toEqual([event.id]);
  expect(recorded).toEqual([event.id]);
  await recorder.stop();
  await bus.close();
});
