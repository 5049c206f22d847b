/** The clients of an object store: with credentials, bounded in time, and with failures in our own words. */
import { S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import { fail } from '../errors.ts';
import { openAgents, storeFailure } from './s3-http.ts';

/** Where the object store is and who we are there. */
export interface S3Place {
  /** Absent for AWS itself. */
  readonly endpoint?: string | undefined;
  /** The endpoint as clients outside reach it, when that is another. */
  readonly publicEndpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** In front of every key. */
  readonly prefix: string;
  /** Absent: the usual places of the environment are looked at. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
  readonly forcePathStyle: boolean;
  /** Whether checksums beyond what the store requires are sent and checked. */
  readonly checksums: 'when_required' | 'when_supported';
}

export interface S3Clients {
  /** For requests of our own that a caller waits for. */
  readonly own: S3Client;
  /** For those in which the store moves bytes before it answers. */
  readonly patient: S3Client;
  /** Signs for the gateway, and for clients outside. A checksum in a signed address would be one of no bytes, so neither has any. */
  readonly signing: S3Client;
  readonly publicSigning: S3Client;
  close(): void;
}

const ownConnections = 64;
const limitsOf = (ms: number) => ({ connectionTimeout: 3_000, requestTimeout: ms, throwOnRequestTimeout: true, socketTimeout: ms });
const ownMs = 10_000;
/** Below the deadline of completing an upload. */
const patientMs = 50_000;

export function openClients({ endpoint, publicEndpoint = endpoint, region, credentials, forcePathStyle, checksums }: S3Place): S3Clients {
  const client = (address: string | undefined, mode: S3Place['checksums'], ms = ownMs) => {
    const checksum = mode === 'when_supported' ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
    return new S3Client({
      region, forcePathStyle, maxAttempts: 2, requestHandler: { ...limitsOf(ms), ...openAgents(ownConnections) },
      requestChecksumCalculation: checksum, responseChecksumValidation: checksum,
      ...(address && { endpoint: address }), ...(credentials && { credentials }),
    });
  };
  const clients = [client(endpoint, checksums), client(endpoint, checksums, patientMs), client(endpoint, 'when_required'), client(publicEndpoint, 'when_required')] as const;
  return {
    own: clients[0], patient: clients[1], signing: clients[2], publicSigning: clients[3],
    close: () => { for (const each of clients) each.destroy(); },
  };
}

/** Whether the store said that what was asked for is not there. */
export function isGone(error: unknown): boolean {
  return error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404;
}

/** Turns what the client throws into what our callers know. An answer that only a wrong setting explains stays as it is, for the log. */
export function clientFailure(error: unknown): unknown {
  if (!(error instanceof S3ServiceException)) return storeFailure(error);
  const { name, $metadata: { httpStatusCode: status = 500 } } = error;
  const cause = new Error(`the object store answered ${status} (${name})`);
  return fail(status >= 500 || status === 408 || status === 429 ? 'service_unavailable' : 'internal', {}, cause);
}
