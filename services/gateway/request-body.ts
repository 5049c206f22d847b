/** Reads request bodies that fit in memory, with a bound on their size and on how long they may take. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { fail } from '../../shared/errors.ts';

/** Bytes of a JSON body. */
export const jsonLimit = 1_024 ** 2;

/** A small body that takes longer than this is a slow client, not a slow network. */
const bodyDeadlineMs = 15_000;

/** Content-Length as the client declared it; undefined for a chunked body. */
export function declaredLength(request: FastifyRequest): number | undefined {
  const value = request.headers['content-length'];
  return value === undefined ? undefined : Number(value);
}

/**
 * Reads a whole body of at most `limit` bytes.
 * @throws payload_too_large, deadline_exceeded
 */
export async function readBody(source: Readable | IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => settle(() => reject(fail('deadline_exceeded', { detail: 'The body did not arrive in time.' }))), bodyDeadlineMs);
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) settle(() => reject(fail('payload_too_large', { detail: `The body must be at most ${limit} bytes.` })));
      else chunks.push(chunk);
    };
    const onEnd = () => settle(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)));
    const onError = (error: Error) => settle(() => reject(error));
    const onClose = () => onError(new Error('the client went away'));
    function settle(outcome: () => void): void {
      clearTimeout(timer);
      source.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
      source.pause();
      outcome();
    }
    if (source.destroyed && !source.readableEnded) return settle(() => reject(source.errored ?? new Error('the client went away')));
    source.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
  });
}
