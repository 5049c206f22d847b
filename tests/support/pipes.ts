/** Pipes as their senders and readers use them: a body that is written piece by piece, and an answer that is read while it comes. */
import { Agent, get, request, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Answer, Exchange, Request, Uploaded } from './exchange.ts';

export interface Pipe extends Uploaded {
  readonly pipeId: string;
  readonly uploadUrl: string;
}

export async function makePipe({ must }: Exchange, fields: Record<string, unknown> = {}, more: Pick<Request, 'bearer' | 'headers'> = {}): Promise<Pipe> {
  return (await must('/api/pipe', { json: fields, ...more })).json as Pipe;
}

/** What a sender was told in the end. */
export interface Told {
  readonly status: number;
  readonly json: any;
}

export interface Sender {
  write(bytes: string | Uint8Array): Promise<void>;
  end(bytes?: string | Uint8Array): Promise<Told>;
  /** Breaks the connection. */
  vanish(): void;
  /** The answer; one that was cut off is `undefined`. */
  readonly told: Promise<Told | undefined>;
}

const patienceMs = 30_000;

/** Begins to send, at another gateway where `at` says so. Nothing is pooled: a connection that breaks is this sender's alone. */
export function sendTo({ uploadUrl, deleteToken }: Pipe, { headers = { 'x-delete-token': deleteToken }, at }: { headers?: Record<string, string>; at?: string } = {}): Sender {
  const address = at === undefined ? uploadUrl : new URL(new URL(uploadUrl).pathname, at);
  const outgoing: ClientRequest = request(address, { method: 'PUT', headers, agent: new Agent() });
  const told = new Promise<Told | undefined>((resolve) => {
    outgoing.on('response', (response) => { response.toArray().then((chunks) => resolve(toldBy(response, chunks as Buffer[])), () => resolve(undefined)); });
    outgoing.on('error', () => resolve(undefined));
  });
  outgoing.flushHeaders();
  return {
    told,
    write: (bytes) => new Promise((resolve) => { outgoing.write(bytes, () => resolve()); }),
    async end(bytes) {
      outgoing.end(bytes);
      const answer = await told;
      if (!answer) throw new Error('the sender was cut off');
      return answer;
    },
    vanish: () => { outgoing.destroy(); },
  };
}

function toldBy({ statusCode }: IncomingMessage, chunks: Buffer[]): Told {
  const text = Buffer.concat(chunks).toString('utf8');
  return { status: statusCode!, json: text === '' ? undefined : JSON.parse(text) as unknown };
}

/** Everything that one request sends. */
export function sendAll({ call }: Exchange, { uploadUrl, deleteToken }: Pipe, body: string | Uint8Array | ReadableStream, more: Request = {}): Promise<Answer> {
  return call(uploadUrl, { method: 'PUT', body, headers: { 'x-delete-token': deleteToken }, ...more });
}

export interface Reader {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** The next so many bytes. */
  take(count: number): Promise<Buffer>;
  /** The rest, and whether it was all: a connection that breaks off is not. */
  rest(): Promise<{ readonly bytes: Buffer; readonly isWhole: boolean }>;
  leave(): void;
}

/** Begins to read. Resolves with the head of the answer, which a live pipe sends with its first byte. */
export function readFrom(address: string, headers: Record<string, string> = {}): Promise<Reader> {
  return new Promise((resolve, reject) => {
    const asked = get(address, { headers, agent: new Agent(), timeout: patienceMs }, (response) => resolve(readerOf(response)));
    asked.on('error', reject);
    asked.on('timeout', () => asked.destroy(new Error('nothing came for too long')));
  });
}

function readerOf(response: IncomingMessage): Reader {
  const ended = new Promise<boolean>((resolve) => {
    response.once('end', () => resolve(response.complete)).once('close', () => resolve(response.complete && response.readableEnded)).on('error', () => resolve(false));
  });
  let wake = () => {};
  for (const event of ['readable', 'end', 'close']) response.on(event, () => wake());
  const kept: Buffer[] = [];
  const take = async (isEnough: (size: number) => boolean): Promise<void> => {
    while (!isEnough(kept.reduce((sum, chunk) => sum + chunk.length, 0))) {
      const chunk = response.read() as Buffer | null;
      if (chunk) kept.push(chunk);
      else if (response.readableEnded || response.destroyed) return;
      else await new Promise<void>((resolve) => { wake = resolve; });
    }
  };
  const cut = (count: number): Buffer => {
    const all = Buffer.concat(kept.splice(0));
    kept.push(all.subarray(count));
    return all.subarray(0, count);
  };
  return {
    status: response.statusCode!,
    headers: response.headers,
    async take(count) {
      await take((size) => size >= count);
      return cut(count);
    },
    async rest() {
      await take(() => false);
      return { bytes: cut(Infinity), isWhole: await ended };
    },
    leave: () => { response.destroy(); },
  };
}

/** A reader that must have been let in. */
export async function follow({ downloadUrl }: Pick<Pipe, 'downloadUrl'>, { headers, at }: { headers?: Record<string, string>; at?: string } = {}): Promise<Reader> {
  const { pathname, search } = new URL(downloadUrl);
  const reader = await readFrom(at === undefined ? downloadUrl : new URL(pathname + search, at).href, headers);
  if (reader.status !== 200) throw new Error(`not let in: ${reader.status} ${(await reader.rest()).bytes.toString('utf8')}`);
  return reader;
}
