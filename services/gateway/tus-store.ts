/** The store that the TUS server asks: one for each request, speaking for its sender to the storage service. */
import { createHash, type Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { DataStore, Upload } from '@tus/server';
import type { FastifyReply } from 'fastify';
import { plans } from '../../shared/contracts/plans.ts';
import { resumables, type Resumable } from '../../shared/contracts/resumables.ts';
import { fail, failField } from '../../shared/errors.ts';
import { parseInput, type CallContext } from '../../shared/rpc.ts';
import type { InputOf } from '../../shared/contract.ts';
import { appendStream, releaseLease, type AppendDeps } from './append-stream.ts';
import { header } from './context.ts';
import { readPasscode } from './domain/credential.ts';
import { isPolicyField, readPolicyTexts, respell } from './domain/form-fields.ts';
import { readChecksum, type Checksum } from './domain/tus-checksum.ts';
import { acceptBody } from './expect-continue.ts';

/** Milliseconds of silence after which what came is stored, although its sender is still there. Nobody reads along. */
const quietMs = 1_000;

/** The names of what a plan says of the file, as a TUS client says it. */
const fileFields = { filename: 'filename', mimeType: 'filetype', size: 'Upload-Length', passcode: 'X-Share-Passcode' };

type Metadata = Readonly<Record<string, string | null>>;

export class TusStore extends DataStore {
  override extensions = ['creation', 'creation-with-upload', 'creation-defer-length', 'termination', 'expiration', 'checksum'];
  readonly #deps: AppendDeps;
  readonly #reply: FastifyReply;
  readonly #context: CallContext;
  /** The upload, as far as this request has learnt of it. */
  known: Resumable | undefined;

  constructor(deps: AppendDeps, reply: FastifyReply, context: CallContext) {
    super();
    this.#deps = deps;
    this.#reply = reply;
    this.#context = context;
  }

  override async create(upload: Upload): Promise<Upload> {
    const { bus } = this.#deps;
    const { request } = this.#reply;
    const { plan } = await planInput(upload, header(request, 'x-share-passcode'))
      .then((asked) => bus.call(plans.planTransfer, asked, this.#context))
      .catch(respell(textsOf(upload.metadata), fileFields));
    const metadata = header(request, 'upload-metadata');
    const { credential: _sender, operationId: _operation, ...context } = this.#context;
    this.known = await bus.call(resumables.beginResumable, { plan, ...(upload.size !== undefined && { size: upload.size }), ...(metadata && { metadata }) }, context);
    // The id is for storage to give; the server reads it from here on.
    return Object.assign(upload, { id: this.known.uploadId, creation_date: this.known.createdAt });
  }

  override async getUpload(id: string): Promise<Upload> {
    const { uploadId, offset, size, createdAt } = this.known ??= await this.#deps.bus.call(resumables.readResumable, { uploadId: id }, this.#context);
    return new Upload({ id: uploadId, offset, size, creation_date: createdAt });
  }

  /** Milliseconds from the creation of this upload to its expiry. */
  override getExpiration(): number {
    return this.known ? Date.parse(this.known.expiresAt) - Date.parse(this.known.createdAt) : 0;
  }

  override async declareUploadLength(id: string, size: number): Promise<void> {
    await this.#deps.bus.call(resumables.declareSize, { uploadId: id, size }, this.#context).catch(respell(new Map(), fileFields));
    this.known = { ...this.known!, size };
  }

  /**
   * Appends the body of the request: from its socket, not from the copy that the server made of it, which would pass every byte through three streams more.
   * Promise: what came is stored though the connection breaks; with a checksum all of it or nothing.
   */
  override async write(copy: Readable, id: string, offset: number): Promise<number> {
    copy.resume();
    const checksum = readChecksum(header(this.#reply.request, 'upload-checksum'));
    const lease = await this.#deps.bus.call(resumables.continueResumable, { uploadId: id, offset }, this.#context);
    acceptBody(this.#reply);
    try {
      const reached = await appendStream(this.#deps, lease, this.#reply.request.raw, { context: this.#context, quietMs, ...checking(checksum) });
      this.known = { ...this.known!, offset: reached };
      return reached;
    } finally {
      await releaseLease(this.#deps, lease, this.#context);
    }
  }

  override async remove(id: string): Promise<void> {
    await this.#deps.bus.call(resumables.abortResumable, { uploadId: id }, this.#context);
  }
}

/** What a client says of the checksum of this request's bytes, held against them. */
function checking(checksum: Checksum | undefined): { hash?: Hash; check?: () => void } {
  if (!checksum) return {};
  const hash = createHash(checksum.algorithm);
  return {
    hash,
    check: () => { if (!hash.digest().equals(checksum.digest)) throw fail('digest_mismatch', { detail: 'Upload-Checksum: the bytes have another one. None of them is stored.' }); },
  };
}

/** The policy fields among a client's words; the rest is its own. */
function textsOf(metadata: Metadata = {}): Map<string, unknown> {
  return new Map(Object.entries(metadata).filter(([name]) => isPolicyField(name)));
}

async function planInput({ size, metadata }: Upload, passcode: string | undefined): Promise<InputOf<typeof plans.planTransfer>> {
  const texts = textsOf(metadata);
  // What is in the metadata is kept and repeated as it came.
  if (texts.has('passcode')) throw failField('passcode', 'belongs in the header X-Share-Passcode');
  const { filename, name, filetype } = (metadata ?? {}) as Metadata;
  return parseInput(plans.planTransfer, {
    ...readPolicyTexts(texts), ...(passcode !== undefined && { passcode: readPasscode(passcode) }),
    filename: filename ?? name ?? 'upload', ...(filetype && { mimeType: filetype }),
    ...(size !== undefined && size > 0 ? { size, lane: 'multipart' } : { lane: 'single' }),
  }) as InputOf<typeof plans.planTransfer>;
}
