/** A service as a process: what it says of bad settings, and that it ends when it is told to. */
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');

/** Runs a service with these settings alone until it ends. */
async function run(service: string, settings: Record<string, string>) {
  const child = spawn(process.execPath, [`services/${service}/main.ts`], { cwd: root, env: settings, stdio: ['ignore', 'pipe', 'pipe'], timeout: 15_000 });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => { said += chunk.toString(); });
  const status = await new Promise((done) => child.on('close', done));
  return { status, said };
}

const good = { NATS_URL: 'nats://127.0.0.1:1', BASE_URL: 'http://localhost:1', DATABASE_URL: 'postgres://127.0.0.1:1/x', AEX_SECRET: 'A'.repeat(43), BLOB_ROOT: '/tmp' };

describe('settings', () => {
  test.each(['policy', 'storage', 'audit', 'gateway'])('%s names every setting that is absent in one sentence', async (service) => {
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
