/** Requests to an object store at presigned addresses: bounded connections, a deadline on every wait, nothing left unread. */
import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { fail, Failure } from '../errors.ts';
import { ignoreLateErrors } from './watch-sink.ts';

const connectMs = 3_000;
/** A connection that was idle for longer may have been closed by the store at this moment. */
const idleConnectionMs = 4_000;
/** Slow readers hold a connection each. */
const maxConnections = 1_024;
const maxRefusalBytes = 4_096;

export interface S3Http {
  /** Begins a request. Its body, if it has one, is the caller's to write; `signal` ends it. */
  begin(url: string, options: Pick<RequestOptions, 'method' | 'headers' | 'signal'>): ClientRequest;
}

/** Pools of connections that are used again, and closed when nobody does. */
export function openAgents(maxSockets = maxConnections): { httpAgent: http.Agent; httpsAgent: https.Agent } {
  const options = { keepAlive: true, maxSockets, maxFreeSockets: 64, timeout: idleConnectionMs };
  return { httpAgent: new http.Agent(options), httpsAgent: new https.Agent(options) };
}

export function openS3Http(): S3Http {
  const { httpAgent, httpsAgent } = openAgents();
  return {
    begin(url, given) {
      const request = url.startsWith('https:') ? https.request(url, { ...given, agent: httpsAgent }) : http.request(url, { ...given, agent: httpAgent });
      limitConnecting(request);
      ignoreLateErrors(request);
      return request;
    },
  };
}

function limitConnecting(request: ClientRequest): void {
  request.once('socket', (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => request.destroy(fail('service_unavailable', {}, new Error('the object store could not be connected to in time'))), connectMs);
    const settle = () => clearTimeout(timer);
    socket.once('connect', settle).once('close', settle);
  });
}

/**
 * Waits for the answer to a request that was sent.
 * @throws service_unavailable, deadline_exceeded when there is none within `ms`, upload_expired when the session has ended, internal for what only a wrong setting explains
 */
export async function answerOf(request: ClientRequest, ms: () => number): Promise<IncomingMessage> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    // The time that the body takes is not the store's.
    const wait = () => { timer = setTimeout(() => request.destroy(fail('deadline_exceeded', {}, new Error('the object store did not answer in time'))), ms()); };
    if (request.writableEnded) wait();
    else request.once('finish', wait);
    request.once('response', resolve).once('error', reject).once('close', () => {
      clearTimeout(timer);
      reject(new Error('the object store closed the connection'));
    });
    request.once('response', () => clearTimeout(timer));
  }).catch((error: unknown) => { throw storeFailure(error); });
  ignoreLateErrors(response);
  if (response.statusCode! >= 200 && response.statusCode! < 300) return response;
  const code = await refusalOf(response);
  request.destroy();
  throw refusal(response.statusCode!, code);
}

/** The code of a refusal; the answer is read a little way and never to its end. */
async function refusalOf(response: IncomingMessage): Promise<string> {
  const timer = setTimeout(() => response.destroy(), connectMs);
  let text = '';
  try {
    for await (const chunk of response) {
      text += String(chunk);
      if (text.length > maxRefusalBytes) break;
    }
  } catch { /* the status says enough */ } finally {
    clearTimeout(timer);
  }
  return /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? 'no code';
}

function refusal(status: number, code: string): Failure {
  const cause = new Error(`the object store answered ${status} (${code})`);
  if (code === 'NoSuchUpload') return fail('upload_expired', {}, cause);
  return fail(status >= 500 || status === 408 || status === 429 ? 'service_unavailable' : 'internal', {}, cause);
}

/** What a broken connection means for the caller. Addresses are kept out of it: they are signed. */
export function storeFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const { code, message } = error as { code?: string; message?: string };
  return fail('service_unavailable', {}, new Error(`the object store: ${code ?? message ?? 'connection lost'}`));
}
