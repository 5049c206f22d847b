/** POST /api/upload: a file and its policy as one form, where LEGACY_SURFACES has it (interface chapter: Transfer plan and creation). */
import { createHash } from 'node:crypto';
import type { MultipartFile, MultipartValue } from '@fastify/multipart';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { plans } from '../../../shared/contracts/plans.ts';
import { uploads, type Written } from '../../../shared/contracts/uploads.ts';
import type { InputOf } from '../../../shared/contract.ts';
import { fail, failField, Failure } from '../../../shared/errors.ts';
import { abandon, smallUpTo, soon } from '../../../shared/lane.ts';
import { parseInput, type CallContext } from '../../../shared/rpc.ts';
import { contextOf } from '../context.ts';
import { isPolicyField, readPolicyTexts, respell } from '../domain/form-fields.ts';
import { acceptBody } from '../expect-continue.ts';
import { nameBadForm, partsOfForm } from '../form-parts.ts';
import { declaredLength, readBody } from '../request-body.ts';
import type { ByteDeps } from './single-lane.ts';

/** Fields are few, and the longest is metadata with every character escaped. A second file is let through to be refused by name. */
const limits = { fields: 16, fieldSize: 64 * 1024, files: 2 };

/** More than all fields and the lines between them can have. */
const besideFile = 2 * 1024 ** 2;

/** What of a plan is about the file. */
const fileFields = { filename: 'file', mimeType: 'file', size: 'file' };

/** A form as far as it has come. */
interface Form {
  readonly texts: Map<string, unknown>;
  file?: { readonly filename: string; readonly mimeType: string };
  /** A small file, wholly in hand. */
  bytes?: Buffer;
  /** Where a larger one is being written, and what was. */
  key?: string;
  written?: Written;
}

interface Sending {
  readonly request: FastifyRequest;
  readonly context: CallContext;
  readonly maxBytes: number;
}

export const uploadForm = (deps: ByteDeps) =>
  async function uploadForm(request: FastifyRequest, reply: FastifyReply) {
    if (!request.isMultipart()) throw fail('unsupported_media_type', { detail: 'Send the file as a form: multipart/form-data.' });
    const context = contextOf(request, plans.planTransfer, deps.baseUrl);
    // Who may not create is refused before anything of the file has come.
    const { maxBytes } = await deps.bus.call(plans.admitSender, {}, soon(context));
    if ((declaredLength(request) ?? 0) > maxBytes + besideFile) throw tooLarge(maxBytes);
    acceptBody(reply);
    const form: Form = { texts: new Map() };
    try {
      await readForm(deps, form, { request, context, maxBytes }).catch(nameBadForm('a whole form with one file'));
      return reply.code(201).send(await storeFile(deps, form, context));
    } catch (error) {
      if (form.key !== undefined) abandon(deps.bus, form.key, context);
      throw error;
    }
  };

async function readForm(deps: ByteDeps, form: Form, sending: Sending): Promise<void> {
  for await (const piece of partsOfForm(sending.request, limits)) {
    if (piece.type === 'field') takeField(form, piece);
    else await takeFile(deps, form, piece, sending);
  }
  if (!form.file) throw failField('file', 'is required');
}

function takeField({ texts }: Form, { fieldname, value, valueTruncated }: MultipartValue): void {
  if (fieldname === 'file') throw failField('file', 'must be a file with a filename');
  if (!isPolicyField(fieldname)) throw failField(String(fieldname).slice(0, 64), 'unknown field');
  if (texts.has(fieldname)) throw failField(fieldname, 'must be given once');
  if (valueTruncated) throw failField(fieldname, 'is too long');
  texts.set(fieldname, value);
  readPolicyTexts(texts);
}

/** Promise: what is known to be bad when the file comes is refused before it is stored. */
async function takeFile(deps: ByteDeps, form: Form, piece: MultipartFile, { request, context, maxBytes }: Sending): Promise<void> {
  if (piece.fieldname !== 'file') throw failField(String(piece.fieldname).slice(0, 64), 'unknown field');
  if (form.file) throw failField('file', 'must be given once');
  if (!piece.filename) throw failField('file', 'must have a filename');
  form.file = { filename: piece.filename, mimeType: piece.mimetype };
  await planInput(form).catch(respell(form.texts, fileFields));
  if ((declaredLength(request) ?? Infinity) <= smallUpTo) form.bytes = await readBody(piece.file, smallUpTo);
  else await writeFile(deps, form, piece, { context, maxBytes });
}

async function writeFile({ bus, blobs }: ByteDeps, form: Form, { file }: MultipartFile, { context, maxBytes }: Pick<Sending, 'context' | 'maxBytes'>): Promise<void> {
  const { ticket } = await bus.call(uploads.openPlace, { maxBytes }, soon(withoutSender(context)));
  form.key = ticket.key;
  // With an Idempotency-Key the plan holds the digest: other bytes are then another request.
  form.written = await blobs.write(ticket, file, { maxBytes, sha256: context.operationId !== undefined }).catch((error: unknown) => {
    throw error instanceof Failure && error.code === 'payload_too_large' ? tooLarge(maxBytes) : error;
  });
}

/** What is asked of a plan. Checked here as well, since an answer must not wait for a file that is stored in vain. */
async function planInput({ texts, file }: Form, content: { size?: number; sha256?: string } = {}): Promise<InputOf<typeof plans.planTransfer>> {
  return parseInput(plans.planTransfer, { ...readPolicyTexts(texts), ...file, lane: 'single', ...content }) as InputOf<typeof plans.planTransfer>;
}

/** Promise: the same operation id with the same fields and the same bytes has the same plan, hence the same transfer and answer. */
async function storeFile({ bus }: ByteDeps, form: Form, context: CallContext) {
  const { bytes, key, written } = form;
  const size = bytes?.length ?? written!.size;
  const sha256 = bytes && context.operationId !== undefined ? createHash('sha256').update(bytes).digest('hex') : written?.sha256;
  const after = soon(context);
  const { planId, plan } = await planInput(form, { ...(size > 0 && { size }), ...(sha256 && { sha256 }) })
    .then((asked) => bus.call(plans.planTransfer, asked, after))
    .catch(respell(form.texts, fileFields));
  const lane = { planId, plan, narrowing: {} };
  return bytes
    ? bus.call(uploads.storeSmall, lane, withoutSender(after), bytes)
    : bus.call(uploads.finishSingle, { ...lane, key: key!, written: written! }, withoutSender(after));
}

/** What goes along with a call that the plan is enough for. */
function withoutSender({ credential: _sender, operationId: _operation, ...context }: CallContext): CallContext {
  return context;
}

function tooLarge(maxBytes: number): Failure {
  const message = `must be at most ${maxBytes} bytes`;
  return fail('payload_too_large', { detail: `file: ${message}`, errors: [{ path: 'file', message }] });
}
