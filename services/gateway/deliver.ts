/** Delivers what a fetch has paid for, or gives it back. */
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { fail } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { SpendingFetch, Spent, Uses } from './uses.ts';

export interface DeliverDeps {
  readonly uses: Uses;
  readonly log: Logger;
}

/** A fetch that was let through, and the head of its answer. */
export interface Delivery {
  readonly reply: FastifyReply;
  readonly fetch: SpendingFetch;
  readonly spent: Spent;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** Where the bytes come from. */
export interface Source {
  /** Makes ready whatever can fail before the first byte. */
  open(): Promise<void>;
  /** Writes every byte and ends the response. */
  send(raw: ServerResponse): Promise<void>;
  close(): Promise<void>;
}

/**
 * Sends an answer's head and bytes. The head goes out with the first byte, so that a failure before it is still an error answer
 * and gives the use back; one after it cuts the connection: the client must not take a part for the whole.
 */
export async function deliverSpent({ uses, log }: DeliverDeps, { reply, fetch, spent, status, headers }: Delivery, source: Source): Promise<FastifyReply> {
  const { raw } = reply;
  try {
    await source.open();
    if (raw.destroyed) throw fail('service_unavailable');
    setHeaders(reply, { status, headers: { ...headers, ...(spent.remainingUses !== undefined && { 'X-Remaining-Uses': String(spent.remainingUses) }) } });
    await source.send(raw);
    reply.hijack();
  } catch (error) {
    if (!raw.headersSent) {
      for (const name of raw.getHeaderNames()) raw.removeHeader(name);
      if (spent.spent) await uses.giveBack(fetch);
      throw error;
    }
    reply.hijack();
    raw.destroy();
    log.info({ requestId: fetch.context.requestId, err: error }, 'a fetch ended early');
  } finally {
    await source.close();
  }
  return reply;
}

/** Puts the headers on the raw response, with those that every response has. */
export function setHeaders(reply: FastifyReply, { status, headers }: { status: number; headers: Record<string, string> }): void {
  reply.raw.statusCode = status;
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value);
  }
  for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
}
