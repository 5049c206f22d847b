/** A service as a process: what it says of bad settings, and that it ends when it is told to. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { resolve } from 'node:path';
import postgres from 'postgres';
import { afterEach, describe, expect, test } from 'vitest';
import { findFreePort } from '../deploy/local/free-port.ts';

const root = resolve(import.meta.dirname, '..');

const started: ChildProcess[] = [];
afterEach(() => started.splice(0).forEach((child) => child.kill('SIGKILL')));

function start(service: string, settings: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [`services/${service}/main.ts`, ...args], { cwd: root, env: settings, stdio: ['ignore', 'pipe', 'pipe'], timeout: 15_000 });
  started.push(child);
  return child;
}

/** Runs a service with these settings alone until it ends. */
async function run(service: string, settings: Record<string, string>, ...args: string[]) {
  const child = start(service, settings, ...args);
  let said = '';
  let printed = '';
  child.stderr.on('data', (chunk: Buffer) => { said += chunk.toString(); });
  child.stdout.on('data', (chunk: Buffer) => { printed += chunk.toString(); });
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, said, printed };
}

/** Asks until somebody answers with this status. */
async function answers(url: string, status: number): Promise<void> {
  await expect.poll(() => fetch(url).then((response) => response.status, () => 0), { timeout: 10_000 }).toBe(status);
}

const good = { NATS_URL: 'nats://127.0.0.1:1', BASE_URL: 'http://localhost:1', DATABASE_URL: 'postgres://127.0.0.1:1/x', AEX_SECRET: 'A'.repeat(43), BLOB_ROOT: '/tmp' };

describe('settings', () => {
  test.each(['policy', 'storage', 'audit', 'importer', 'gateway'])('%s names every setting that is absent in one sentence', async (service) => {
    const { status, said } = await run(service, {});
    expect(status).toBe(78);
    expect(said).toMatch(/^Bad settings: .*NATS_URL must be set.*\.\n$/);
  });

  test.each([
    ['policy', 'AEX_SECRET', 'short', /AEX_SECRET must be one or more base64url keys/],
    ['policy', 'TTL_MAX_SECONDS', 'a week', /TTL_MAX_SECONDS must be a whole number/],
    ['policy', 'GRANT_TTL_SECONDS', '301', /GRANT_TTL_SECONDS must be between 1 and 300/],
    ['policy', 'BASE_URL', 'ftp://x', /BASE_URL must be an http or https address/],
    ['gateway', 'PORT', '70000', /PORT must be between 0 and 65535/],
    ['gateway', 'TRUSTED_PROXIES', '2', /TRUSTED_PROXIES/],
    ['importer', 'IMPORT_ALLOW_RANGES', '10.0.0.0/33', /IMPORT_ALLOW_RANGES must be addresses or CIDR ranges/],
    ['importer', 'IMPORT_DENY_RANGES', 'intranet', /IMPORT_DENY_RANGES must be addresses or CIDR ranges/],
    ['importer', 'IMPORT_DENY_PORTS', '80-90', /IMPORT_DENY_PORTS must be ports/],
    ['importer', 'IMPORT_DNS_SERVERS', 'dns.example', /IMPORT_DNS_SERVERS must be addresses of name servers/],
    ['importer', 'IMPORT_TIMEOUT_SECONDS', '121', /IMPORT_TIMEOUT_SECONDS must be between 1 and 120/],
    ['storage', 'BLOB_DRIVER', 'ftp', /BLOB_DRIVER must be fs or s3/],
    ['storage', 'S3_ENDPOINT', 'minio:9000', /S3_ENDPOINT must be an http or https address/],
    ['audit', 'LOG_LEVEL', 'loud', /LOG_LEVEL/],
  ])('%s refuses a bad %s', async (service, name, value, sentence) => {
    const { status, said } = await run(service, { ...good, [name]: value });
    expect(status).toBe(78);
    expect(said).toMatch(sentence);
    expect(said.trim().split('\n')).toHaveLength(1);
  });

  test('a setting’s value is not repeated: it may be a secret', async () => {
    const { said } = await run('policy', { ...good, AEX_SECRET: 'not-long-enough-secret' });
    expect(said).not.toContain('not-long-enough-secret');
  });
});

describe('health', () => {
  test('a service that cannot reach NATS lives and is not ready, and ends when it is told to', async () => {
    const port = await findFreePort();
    const child = start('audit', { ...good, METRICS_PORT: String(port) });
    await answers(`http://127.0.0.1:${port}/livez`, 200);
    await answers(`http://127.0.0.1:${port}/readyz`, 503);
    await answers(`http://127.0.0.1:${port}/else`, 404);
    child.kill('SIGTERM');
    expect((await once(child, 'close'))[0]).toBe(143);
  });

  test('a service is ready while its database answers, and lives all the same', async () => {
    const { url, drop } = await makeSchema();
    const way = await openWay(url);
    const port = await findFreePort();
    start('audit', { ...good, NATS_URL: natsUrl(), DATABASE_URL: way.url, METRICS_PORT: String(port) });
    await answers(`http://127.0.0.1:${port}/readyz`, 200);
    way.close();
    await answers(`http://127.0.0.1:${port}/readyz`, 503);
    await answers(`http://127.0.0.1:${port}/livez`, 200);
    await drop();
  });
});

/** A way to the database that can be closed. */
async function openWay(url: string) {
  const target = new URL(url);
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    sockets.push(near, far);
    for (const socket of [near, far]) socket.on('error', () => undefined);
    near.pipe(far).pipe(near);
  });
  const port = await findFreePort();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    url: Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A schema of its own on the server of the test run. */
async function makeSchema() {
  const schema = `scratch_${randomUUID().replaceAll('-', '')}`;
  const admin = postgres(process.env['AEX_TEST_DATABASE_URL']!, { max: 1, onnotice: () => undefined });
  await admin.unsafe(`create schema ${schema}`);
  const url = new URL(process.env['AEX_TEST_DATABASE_URL']!);
  url.searchParams.set('search_path', schema);
  return {
    url: url.href,
    async drop() {
      await admin.unsafe(`drop schema ${schema} cascade`);
      await admin.end();
    },
  };
}

describe('a stop', () => {
  test('lets a request that is under way finish, and takes no other', async () => {
    const { child, port, health } = await startGateway('600');
    const request = await beginRequest(port);
    child.kill('SIGTERM');
    await answers(`http://127.0.0.1:${health}/readyz`, 503);
    await answers(`http://127.0.0.1:${port}/healthz`, 0);
    request.write('}');
    expect(String((await once(request, 'data'))[0])).toMatch(/^HTTP\/1\.1 400 /);
    expect((await once(child, 'close'))[0]).toBe(0);
  });

  test('waits no longer than DRAIN_SECONDS', async () => {
    const { child, port } = await startGateway('1');
    await beginRequest(port);
    child.kill('SIGTERM');
    expect((await once(child, 'close'))[0]).toBe(1);
  });
});

const natsUrl = () => process.env['AEX_TEST_NATS_URL']!;

async function startGateway(drainSeconds: string) {
  const [port, health] = [await findFreePort(), await findFreePort()];
  const child = start('gateway', { ...good, NATS_URL: natsUrl(), PORT: String(port), METRICS_PORT: String(health), DRAIN_SECONDS: drainSeconds });
  await answers(`http://127.0.0.1:${health}/readyz`, 200);
  return { child, port, health };
}

/** A request whose body is not finished. */
async function beginRequest(port: number) {
  const socket = connect(port, '127.0.0.1');
  socket.write('POST /api/owner/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n');
  await once(socket, 'data');
  socket.on('error', () => undefined).write('{');
  return socket;
}

describe('tasks', () => {
  test.each(['policy', 'storage', 'audit', 'gateway'])('%s lists its settings without being given any', async (service) => {
    const { status, printed } = await run(service, {}, '--settings');
    expect(status).toBe(0);
    const settings = JSON.parse(printed) as { name: string }[];
    expect(settings).toContainEqual({ name: 'NATS_URL', required: true, description: expect.any(String) });
    expect(settings).toContainEqual({ name: 'DRAIN_SECONDS', required: false, default: 10, allowed: '1 to 86400', description: expect.any(String) });
  });

  test('settings can be checked without starting anything', async () => {
    expect((await run('gateway', good, '--check-settings')).status).toBe(0);
    expect(await run('gateway', { ...good, PORT: 'x' }, '--check-settings')).toMatchObject({ status: 78, said: expect.stringContaining('PORT') });
  });

  test('a task that there is not starts nothing', async () => {
    expect(await run('gateway', good, '--migrat')).toMatchObject({ status: 78, said: expect.stringContaining('--migrat:') });
    expect(await run('gateway', good, '--migrate')).toMatchObject({ status: 78, said: 'gateway has no database.\n' });
  });

  test('a schema is brought up to date once, however often that is asked, and needs the database alone', async () => {
    const { url, drop } = await makeSchema();
    const migrated = await Promise.all([1, 2, 3].map(() => run('audit', { DATABASE_URL: url }, '--migrate')));
    expect(migrated.map(({ status }) => status)).toEqual([0, 0, 0]);
    expect(migrated.filter(({ printed }) => printed.includes('001-events.sql'))).toHaveLength(1);
    await drop();
  });
});
