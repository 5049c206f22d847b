/** Where the bytes are: a folder, or a bucket of an object store. Each needs settings of its own. */
import { z } from 'zod';
import type { BlobStore } from '../../shared/blobs/blobs.ts';
import { openFsBlobs } from '../../shared/blobs/fs.ts';
import { openS3Blobs } from '../../shared/blobs/s3.ts';
import { SettingsError } from '../../shared/settings.ts';

const address = z.url({ protocol: /^https?$/, error: 'must be an http or https address' });

export const blobSettings = {
  BLOB_DRIVER: z.enum(['fs', 's3'], 'must be fs or s3').default('fs').describe('Where bytes are: a folder, or a bucket of an object store'),
  BLOB_ROOT: z.string().startsWith('/', 'must be an absolute path').optional().describe('The folder of the `fs` driver, as an absolute path'),
  S3_ENDPOINT: address.optional().describe("The object store's address; the SDK's for the region when absent"),
  S3_PUBLIC_ENDPOINT: address.optional().describe('The object store’s address for clients, with `DIRECT_LANE`; `S3_ENDPOINT` when absent'),
  S3_REGION: z.string().default('us-east-1').describe('The region of the object store'),
  S3_BUCKET: z.string().optional().describe('The bucket; needed with the `s3` driver'),
  S3_PREFIX: z.string().regex(/^[\w./-]*$/, 'must be letters, digits and . _ - /').default('').describe('What the name of every object begins with'),
  S3_ACCESS_KEY_ID: z.string().optional().describe("The access key; set with its secret, or neither for the pod's own identity"),
  S3_SECRET_ACCESS_KEY: z.string().optional().describe('The secret of `S3_ACCESS_KEY_ID`'),
  S3_FORCE_PATH_STYLE: z.enum(['true', 'false'], 'must be true or false').default('false').describe('`true` for stores that do not have the bucket in the host name'),
  S3_CHECKSUMS: z.enum(['when_required', 'when_supported'], 'must be when_required or when_supported').default('when_required').describe('When the SDK adds checksums of its own; some stores refuse them'),
};

type BlobSettings = z.output<z.ZodObject<typeof blobSettings>>;

/** @throws SettingsError that names what the driver needs. */
export function openBlobs(settings: BlobSettings, blobIdleSeconds: number): BlobStore {
  if (settings.BLOB_DRIVER === 'fs') return openFsBlobs(required(settings, 'BLOB_ROOT'));
  const accessKeyId = settings.S3_ACCESS_KEY_ID;
  const secretAccessKey = settings.S3_SECRET_ACCESS_KEY;
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) throw new SettingsError('Bad settings: S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set together.');
  return openS3Blobs({
    endpoint: settings.S3_ENDPOINT,
    publicEndpoint: settings.S3_PUBLIC_ENDPOINT,
    region: settings.S3_REGION,
    bucket: required(settings, 'S3_BUCKET'),
    prefix: settings.S3_PREFIX,
    credentials: accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined,
    forcePathStyle: settings.S3_FORCE_PATH_STYLE === 'true',
    checksums: settings.S3_CHECKSUMS,
    // Several may go unheard before a file counts as given up.
  }, Math.max(250, (blobIdleSeconds * 1_000) / 5));
}

function required(settings: BlobSettings, name: 'BLOB_ROOT' | 'S3_BUCKET'): string {
  const value = settings[name];
  if (!value) throw new SettingsError(`Bad settings: ${name} must be set when BLOB_DRIVER is ${settings.BLOB_DRIVER}.`);
  return value;
}
