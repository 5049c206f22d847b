/** POST /api/upload/multipart/part: one part, as a raw body or as a form (interface chapter: Native multipart lane). */
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { planHeader } from '../../../shared/contracts/plans.ts';
import { uploads } from '../../../shared/contracts/uploads.ts';
import { fail, failField } from '../../../shared/errors.ts';
import { abandon, soon } from '../../../shared/lane.ts';
import { parseInput } from '../../../shared/rpc.ts';
import { contextOf, header } from '../context.ts';
import { acceptBody } from '../expect-continue.ts';
import { nameBadForm, partsOfForm } from '../form-parts.ts';
import { unknownParameter } from '../mount.ts';
import { contentDigest } from '../domain/transfer-headers.ts';
import { declaredLength } from '../request-body.ts';
import type { ByteDeps } from './single-lane.ts';

/** A part to be stored: which it is, and where its bytes come from. */
interface Part {
  readonly uploadId: unknown;
  readonly partNumber: unknown;
  /** Bytes, when the client said. */
  readonly size: number | undefined;
  readonly source: Readable;
}

export const uploadPart = (deps: ByteDeps) =>
  async function uploadPart(request: FastifyRequest, reply: FastifyReply) {
    // A form's fields are in its body, so its sender may go on at once.
    if (request.isMultipart()) acceptBody(reply);
    const stored = request.isMultipart()
      ? readForm(request).then((part) => storePart(deps, reply, part)).catch(nameBadForm('a whole form with uploadId, partNumber and one file'))
      : storePart(deps, reply, readRaw(request));
    return reply.code(200).send(await stored);
  };

async function storePart({ bus, blobs, baseUrl }: ByteDeps, reply: FastifyReply, part: Part) {
  const { request } = reply;
  const context = contextOf(request, { ...uploads.openPart, http: uploads.finishPart.http }, baseUrl);
  const plan = header(request, planHeader.toLowerCase());
  const deleteToken = header(request, 'x-delete-token');
  const { uploadId, partNumber } = parseInput(uploads.openPart, {
    uploadId: part.uploadId, partNumber: part.partNumber, deleteToken,
    ...(part.size !== undefined && { size: part.size }),
  }) as { uploadId: string; partNumber: number };
  const { ticket, size } = await bus.call(uploads.openPart, { uploadId, partNumber, size: part.size, plan, deleteToken }, soon(context));
  acceptBody(reply);
  try {
    const written = await blobs.write(ticket, part.source, { maxBytes: size, sha256: true }).catch(nameTooLarge(size));
    const digest = contentDigest(header(request, 'content-digest') ?? '');
    if (digest !== undefined && digest !== written.sha256) throw fail('digest_mismatch');
    return await bus.call(uploads.finishPart, { uploadId, partNumber, key: ticket.key, written }, soon(context));
  } catch (error) {
    abandon(bus, ticket.key, context);
    throw error;
  }
}

/** More bytes than the part has room for is a matter of the part, not of the whole body. */
function nameTooLarge(size: number) {
  return (error: unknown): never => {
    if ((error as { code?: string }).code === 'payload_too_large') throw fail('part_size_mismatch', { detail: `This part must have exactly ${size} bytes.` });
    throw error;
  };
}

function readRaw(request: FastifyRequest): Part {
  const { uploadId, partNumber, ...unknown } = request.query as Record<string, unknown>;
  const [extra] = Object.keys(unknown);
  if (extra !== undefined) throw unknownParameter(extra);
  return { uploadId, partNumber: toNumber(partNumber), size: declaredLength(request), source: request.raw };
}

/** A form streams: its fields must come before its file, or be in the query. */
async function readForm(request: FastifyRequest): Promise<Part> {
  const fields: Record<string, unknown> = { ...(request.query as object) };
  for await (const piece of partsOfForm(request, { fields: 4, files: 1, fieldSize: 1_024 })) {
    if (piece.type === 'field') {
      if (piece.fieldname !== 'uploadId' && piece.fieldname !== 'partNumber') throw failField(piece.fieldname, 'unknown field');
      fields[piece.fieldname] = piece.value;
      continue;
    }
    for (const name of ['uploadId', 'partNumber']) {
      if (fields[name] === undefined) throw failField(name, 'is required, and must come before the file');
    }
    return { uploadId: fields['uploadId'], partNumber: toNumber(fields['partNumber']), size: undefined, source: piece.file };
  }
  throw failField('file', 'is required');
}

function toNumber(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,9}$/.test(value) ? Number(value) : value;
}
