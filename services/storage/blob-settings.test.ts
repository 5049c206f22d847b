import { expect, test } from 'vitest';
import { z } from 'zod';
import { blobSettings, openBlobs } from './blob-settings.ts';

const open = (given: Record<string, string>) => openBlobs(z.object(blobSettings).parse(given), 120);
const keys = { S3_ACCESS_KEY_ID: 'a', S3_SECRET_ACCESS_KEY: 'b' };

test('each driver needs its own settings, and not the other’s', () => {
  expect(() => open({})).toThrow('BLOB_ROOT must be set when BLOB_DRIVER is fs.');
  expect(() => open({ BLOB_DRIVER: 's3' })).toThrow('S3_BUCKET must be set when BLOB_DRIVER is s3.');
  expect(() => open({ BLOB_DRIVER: 's3', S3_BUCKET: 'b', S3_ACCESS_KEY_ID: 'a' })).toThrow('S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set together.');
  expect(open({ BLOB_ROOT: '/tmp' }).objects).toBeUndefined();
  expect(open({ BLOB_DRIVER: 's3', S3_BUCKET: 'b', ...keys }).objects).toBeDefined();
});

test('addresses for clients are at the endpoint that clients reach, and the exchange reads at its own', async () => {
  const { objects } = open({ BLOB_DRIVER: 's3', S3_BUCKET: 'b', ...keys, S3_ENDPOINT: 'http://minio:9000', S3_PUBLIC_ENDPOINT: 'https://files.example', S3_FORCE_PATH_STYLE: 'true' });
  expect(await objects!.signPartForClient('key', 5, { session: 's', partNumber: 1 }, 60)).toMatch(/^https:\/\/files\.example\/b\/key\?/);
  expect(await objects!.signRead('key')).toMatch(/^http:\/\/minio:9000\/b\/key\?/);
});
