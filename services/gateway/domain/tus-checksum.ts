/** The Upload-Checksum header of TUS: an algorithm and the digest of the request's bytes. */
import { failField } from '../../../shared/errors.ts';

/** Bytes of each digest. */
const sizes: Readonly<Record<string, number>> = { md5: 16, sha1: 20, sha256: 32 };

export const checksumAlgorithms = Object.keys(sizes);

export interface Checksum {
  readonly algorithm: string;
  readonly digest: Buffer;
}

/** @throws invalid_request */
export function readChecksum(header: string | undefined): Checksum | undefined {
  if (header === undefined) return undefined;
  const [, algorithm = '', text = ''] = /^([a-z0-9]+) ([A-Za-z0-9+/]+={0,2})$/.exec(header) ?? [];
  if (!Object.hasOwn(sizes, algorithm)) throw failField('Upload-Checksum', `must be one of ${checksumAlgorithms.join(', ')} and a digest in base64`);
  const digest = Buffer.from(text, 'base64');
  if (digest.length !== sizes[algorithm]) throw failField('Upload-Checksum', `must have ${sizes[algorithm]} bytes`);
  return { algorithm, digest };
}
