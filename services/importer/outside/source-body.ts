/** Reads the body of a response: decoded, counted, and given up when it pauses or has no end. */
import type { IncomingMessage } from 'node:http';
import { addAbortSignal, pipeline, Readable, type Duplex } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { fail, Failure } from '../../../shared/errors.ts';
import { tooLarge, type Coding } from '../domain/response.ts';
import { reasonOf } from './abort.ts';

const decoders: Readonly<Record<Coding, () => Duplex>> = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress };

export interface BodyBounds {
  readonly coding: Coding | undefined;
  readonly maxBytes: number;
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

/**
 * The bytes of a body, piece by piece.
 * @throws payload_too_large, import_timed_out, import_upstream_failed when it is cut or broken
 */
export async function* readSourceBody(response: IncomingMessage, { coding, maxBytes, idleMs, signal }: BodyBounds): AsyncGenerator<Buffer> {
  addAbortSignal(signal, response);
  response.socket.setTimeout(idleMs, () => response.destroy(fail('import_timed_out', { detail: 'The server paused for too long.' })));
  try {
    // Both sides of a decoder are counted: a body may grow without bounds, and may go on for ever without growing.
    const received = counted(response, maxBytes);
    yield* coding ? counted(pipeline(Readable.from(received), decoders[coding](), () => undefined), maxBytes) : received;
  } catch (error) {
    if (signal.aborted) throw reasonOf(signal);
    throw error instanceof Failure ? error : fail('import_upstream_failed', { detail: 'The server broke off its answer, or sent it damaged.' }, error);
  } finally {
    response.destroy();
  }
}

async function* counted(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}
