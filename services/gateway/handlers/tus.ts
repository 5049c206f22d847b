/** /api/tus: resumable uploads by the TUS protocol 1.0.0, where LEGACY_SURFACES has it (interface chapter: TUS adapter). */
import { Server } from '@tus/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AnswerOf } from '../../../shared/contract.ts';
import { uploadId as uploadIdSchema } from '../../../shared/contracts/fields.ts';
import { plans } from '../../../shared/contracts/plans.ts';
import { resumables } from '../../../shared/contracts/resumables.ts';
import { fail, failField, Failure } from '../../../shared/errors.ts';
import { contextOf, header } from '../context.ts';
import { checksumAlgorithms } from '../domain/tus-checksum.ts';
import { nameTusError } from '../domain/tus-error.ts';
import { TusStore } from '../tus-store.ts';
import type { ByteDeps } from './single-lane.ts';

const version = '1.0.0';
const bodyType = 'application/offset+octet-stream';
const path = '/api/tus';

/** Whoever may write has the lease of the append upload, over all gateways; there is nothing to lock beside it. */
const noLocker = { newLock: () => ({ lock: async () => undefined, unlock: async () => undefined }) };

export const tus = (deps: ByteDeps) =>
  async function tus(request: FastifyRequest, reply: FastifyReply) {
    void reply.header('Tus-Resumable', version);
    checkProtocol(request, reply);
    const context = contextOf(request, plans.planTransfer, deps.baseUrl);
    const store = new TusStore(deps, reply, context);
    const finish = async () => toldShare(await deps.bus.call(resumables.finishResumable, { uploadId: store.known!.uploadId }, context));
    // A browser that asks what is offered sends no credential: who needs one learns the maximum with the first refusal.
    const maxSize = () => deps.bus.call(plans.admitSender, {}, context).then(({ maxBytes }) => maxBytes, () => 0);

    const answer = await ask(request, serverOf(store, { baseUrl: deps.baseUrl, finish, maxSize })).catch(sayMismatch);
    if (request.method === 'OPTIONS') void reply.header('Tus-Checksum-Algorithm', checksumAlgorithms.join(','));
    if (request.method === 'HEAD') await tellMore(reply, store, finish);
    return reply.code(answer.status).headers(answer.headers).send(answer.body);
  };

function checkProtocol(request: FastifyRequest, reply: FastifyReply): void {
  if (request.method === 'OPTIONS') return;
  if (header(request, 'tus-resumable') !== version) {
    void reply.header('Tus-Version', version);
    throw fail('precondition_failed', { detail: `Tus-Resumable must be ${version}.` });
  }
  const { uploadId } = request.params as { uploadId?: string };
  if (uploadId !== undefined && !uploadIdSchema.safeParse(uploadId).success) throw fail('multipart_upload_not_found');
  if (request.method === 'PATCH' && header(request, 'content-type') !== bodyType) throw fail('unsupported_media_type', { detail: `Send bytes as ${bodyType}.` });
  if (header(request, 'upload-concat') !== undefined) throw failField('Upload-Concat', 'is not supported; send the file as one upload');
}

interface Ways {
  readonly baseUrl: string;
  readonly finish: () => Promise<Told>;
  readonly maxSize: () => Promise<number>;
}

/** A server of this request alone: what it asks of its store is asked for the sender. */
function serverOf(store: TusStore, { baseUrl, finish, maxSize }: Ways) {
  const failures: unknown[] = [];
  const server = new Server({
    path,
    datastore: store,
    locker: noLocker,
    generateUrl: (_request, { id }) => `${baseUrl}${path}/${id}`,
    // The plan bounds an upload when it begins, and its lease while bytes come.
    maxSize: ({ method }) => (method === 'OPTIONS' ? maxSize() : 0),
    // Storage gives the id; until then the server wants to see one.
    namingFunction: () => 'to-be-given',
    onUploadFinish: finish,
    onResponseError: (_request, error) => { failures.push(error); return undefined; },
  });
  return { server, failures };
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Promise: what the server refuses is answered in our form, with a code of our table. */
async function ask({ method, url, headers }: FastifyRequest, { server, failures }: ReturnType<typeof serverOf>): Promise<Answer> {
  const given = Object.entries(headers).filter(([name, value]) => /^(tus-|upload-|content-(type|length)$)/.test(name) && typeof value === 'string') as [string, string][];
  const response = await server.handleWeb(new Request(new URL(url, 'http://tus'), { method, headers: given }));
  const body = await response.text();
  const [error] = failures;
  if (error instanceof Error) throw error;
  if (error !== undefined || response.status >= 400) throw nameTusError((error as { status_code?: number } | undefined)?.status_code ?? response.status, body);
  return { status: response.status, headers: ownHeaders(response.headers, body), body };
}

/** As with all other routes, pages of other sites get no access by headers. */
function ownHeaders(headers: Headers, body: string): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !name.startsWith('access-control-') && name !== 'content-length' && (name !== 'content-type' || body !== '')));
}

/** The protocol has a status of its own for bytes that do not have their checksum. */
function sayMismatch(error: unknown): Answer {
  if (!(error instanceof Failure) || error.code !== 'digest_mismatch') throw error;
  return { status: 460, headers: { 'Content-Type': 'text/plain; charset=utf-8' }, body: 'Checksum Mismatch\n' };
}

interface Told {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** The upload response: in headers, since most answers of the protocol have no body, and as JSON where one has. */
function toldShare(share: AnswerOf<typeof resumables.finishResumable>): Told {
  const { id, shareId, shareUrl, downloadUrl, expiresAt, deleteToken } = share;
  return {
    headers: {
      'X-Transfer-Id': id, 'X-Share-Id': shareId, 'X-Share-Url': shareUrl, 'X-Download-Url': downloadUrl, 'X-Expires-At': expiresAt, 'X-Delete-Token': deleteToken,
      'Content-Type': 'application/json; charset=utf-8',
    },
    body: JSON.stringify(share),
  };
}

/** Promise: who finds every byte stored has a share: an upload whose last answer was lost is finished here. */
async function tellMore(reply: FastifyReply, { known }: TusStore, finish: () => Promise<Told>): Promise<void> {
  if (!known) return;
  if (known.metadata !== undefined) void reply.header('Upload-Metadata', known.metadata);
  if (known.offset !== known.size) return void reply.header('Upload-Expires', new Date(known.expiresAt).toUTCString());
  const { 'Content-Type': _none, ...headers } = (await finish()).headers;
  void reply.headers(headers);
}
