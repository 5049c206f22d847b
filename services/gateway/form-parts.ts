/** The parts of a form as they stream in, and what their parser throws in our codes. */
import type { Multipart, MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { failField } from '../../shared/errors.ts';

interface Limits {
  readonly fields: number;
  /** Bytes. */
  readonly fieldSize: number;
  readonly files: number;
}

/**
 * Promise: a file whose form breaks off breaks, too. The parser says so in place of the next part only, and leaves the file for ever without an end:
 * so the next part is asked for at once.
 */
export async function* partsOfForm(request: FastifyRequest, limits: Limits): AsyncGenerator<Multipart> {
  // At the level of traces the parser logs every header of the request, credentials among them.
  const unlogged = Object.create(request, { log: { value: request.log.child({}, { level: 'silent' }) } }) as FastifyRequest;
  const parts = unlogged.parts({ limits: { ...limits, fileSize: Infinity } })[Symbol.asyncIterator]();
  for (let next = parts.next(); ;) {
    const { done, value } = await next;
    if (done) return;
    next = parts.next();
    if (value.type === 'file') breakWith(value, next);
    else next.catch(() => undefined);
    yield value;
  }
}

function breakWith({ file }: MultipartFile, next: Promise<IteratorResult<Multipart, unknown>>): void {
  next.then(
    ({ done }) => { if (done && !file.readableEnded) file.destroy(new Error('the form ended before its file')); },
    (error: Error) => file.destroy(error),
  );
}

/** What the parser throws is the sender's to mend: plain errors and codes of its own. Anything else goes on as it is. */
export function nameBadForm(expected: string) {
  return (error: unknown): never => {
    const { name, code, message } = error as { name?: string; code?: unknown; message?: string };
    const isOfParser = typeof code === 'string' ? code.startsWith('FST_') : code === undefined && name === 'Error';
    throw isOfParser ? failField('body', `must be ${expected} (${message})`) : error;
  };
}
