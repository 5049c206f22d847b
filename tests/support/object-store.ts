/** A real S3 server for tests: the one that AEX_TEST_S3 names, or one found on the PATH and started. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { findOnPath } from '../../deploy/local/command.ts';
import { findFreePort } from '../../deploy/local/free-port.ts';
import type { S3Place } from '../../shared/blobs/s3-client.ts';

export const noObjectStore = 'skipped, no S3 server: set AEX_TEST_S3 to http://<access key>:<secret>@<host>:<port>/<bucket>, or put versitygw on the PATH';

/** A bucket, with the credentials to use it. */
export interface TestStore {
  readonly endpoint: string;
  /** A part of the bucket that nobody else uses. */
  newPlace(): S3Place & { readonly endpoint: string; readonly credentials: NonNullable<S3Place['credentials']> };
}

/** The server of this test run, undefined when there is none. */
export function objectStoreGiven(): TestStore | undefined {
  const given = process.env['AEX_TEST_S3'];
  return given ? readStore(given) : undefined;
}

function readStore(address: string): TestStore {
  const url = new URL(address);
  const endpoint = url.origin;
  const credentials = { accessKeyId: decodeURIComponent(url.username), secretAccessKey: decodeURIComponent(url.password) };
  return {
    endpoint,
    newPlace: () => ({
      endpoint, credentials, bucket: url.pathname.slice(1), prefix: `test-${randomBytes(8).toString('hex')}/`,
      region: url.searchParams.get('region') ?? 'us-east-1', forcePathStyle: true, checksums: 'when_required',
    }),
  };
}

/** The settings of services that keep their bytes there; `endpoint` is another way to the same server. */
export function storeSettings({ newPlace }: TestStore, endpoint?: string): Record<string, string> {
  const place = newPlace();
  return {
    BLOB_DRIVER: 's3', S3_ENDPOINT: endpoint ?? place.endpoint, S3_REGION: place.region, S3_BUCKET: place.bucket, S3_PREFIX: place.prefix,
    S3_ACCESS_KEY_ID: place.credentials.accessKeyId, S3_SECRET_ACCESS_KEY: place.credentials.secretAccessKey, S3_FORCE_PATH_STYLE: 'true',
  };
}

/** What each stack of this run is given, by service: an object store's settings when AEX_TEST_BLOBS is s3. */
export function blobSettings(): Record<string, Record<string, string>> {
  if (process.env['AEX_TEST_BLOBS'] !== 's3') return {};
  const store = objectStoreGiven();
  if (!store) throw new Error(`AEX_TEST_BLOBS is s3: ${noObjectStore}`);
  return { storage: storeSettings(store) };
}

const access = 'asset-exchange';
const bucket = 'exchange';

/** Servers that can be started, each with its arguments. */
const servers: Readonly<Record<string, (port: number, folder: string, secret: string) => { args: string[]; env: Record<string, string> }>> = {
  versitygw: (port, folder, secret) => ({
    args: ['--port', `127.0.0.1:${port}`, '--keep-alive', '--quiet', 'posix', folder], env: { ROOT_ACCESS_KEY: access, ROOT_SECRET_KEY: secret },
  }),
  minio: (port, folder, secret) => ({
    args: ['server', '--quiet', '--address', `127.0.0.1:${port}`, folder], env: { MINIO_ROOT_USER: access, MINIO_ROOT_PASSWORD: secret },
  }),
};

/** Whether there is a server for tests: named, or a program that can be started. */
export async function findObjectStore(): Promise<string | undefined> {
  if (process.env['AEX_TEST_S3']) return process.env['AEX_TEST_S3'];
  const found = await Promise.all(Object.keys(servers).map((name) => findOnPath(name)));
  return found.find((file) => file !== undefined);
}

/** Makes the server of this run known in AEX_TEST_S3, starting one when it names none. Answers how to stop it. */
export async function provideObjectStore(): Promise<() => Promise<void>> {
  const file = process.env['AEX_TEST_S3'] ? undefined : await findObjectStore();
  if (!file) return async () => undefined;
  const folder = await mkdtemp(join(tmpdir(), 'aex-s3-'));
  const port = await findFreePort();
  const secret = randomBytes(16).toString('hex');
  const { args, env } = servers[basename(file)]!(port, folder, secret);
  const server = spawn(file, args, { env: { ...process.env, ...env }, stdio: 'ignore' });
  const ended = once(server, 'exit');
  await makeBucket(`http://127.0.0.1:${port}`, secret);
  process.env['AEX_TEST_S3'] = `http://${access}:${secret}@127.0.0.1:${port}/${bucket}`;
  return async () => {
    delete process.env['AEX_TEST_S3'];
    server.kill();
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
}

/** Waits until the server serves. */
async function makeBucket(endpoint: string, secret: string): Promise<void> {
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, maxAttempts: 1, credentials: { accessKeyId: access, secretAccessKey: secret } });
  for (const end = Date.now() + 30_000; ; await sleep(100)) {
    const error = await client.send(new CreateBucketCommand({ Bucket: bucket })).then(() => undefined, (reason: unknown) => reason);
    if (!error) return client.destroy();
    if (Date.now() > end) throw error;
  }
}
