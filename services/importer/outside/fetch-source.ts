/** Fetches a URL hop by hop. Each hop is checked, looked up, checked again and connected to anew; nothing is carried from one to the next. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ignoreLateErrors } from '../../../shared/blobs/watch-sink.ts';
import { fail } from '../../../shared/errors.ts';
import { isAllowedAddress, type AddressSettings } from '../domain/address-rules.ts';
import { isRedirect, type ResponseHead } from '../domain/response.ts';
import { blocked, isAllowedPort, readRedirect, type Source } from '../domain/source-url.ts';
import { once, orAborted, timeLimit } from './abort.ts';
import { connect } from './connect.ts';
import type { Names } from './names.ts';

const headerBytes = 32 * 1024;

export interface Outside {
  readonly names: Names;
  readonly addresses: AddressSettings;
  readonly deniedPorts: readonly number[];
  readonly maxRedirects: number;
  /** From the begin of a hop until its response begins. */
  readonly firstByteMs: number;
  /** Without a byte of a body. */
  readonly idleMs: number;
  readonly userAgent: string;
}

export interface Fetched {
  /** The last hop's. */
  readonly url: URL;
  readonly head: ResponseHead;
  /** Not yet read; to be destroyed by whoever takes it. */
  readonly body: IncomingMessage;
}

/**
 * The response that a URL leads to, after its redirects.
 * @throws import_url_blocked, import_upstream_failed, import_timed_out
 */
export async function fetchSource(outside: Outside, first: Source, { signal, onRedirect }: { signal: AbortSignal; onRedirect: () => void }): Promise<Fetched> {
  let source = first;
  for (let redirects = 0; ; redirects += 1) {
    const firstByte = timeLimit(outside.firstByteMs, `The server did not begin to answer within ${outside.firstByteMs / 1_000} seconds.`);
    const body = await openHop(outside, source, AbortSignal.any([signal, firstByte]));
    const head = { status: body.statusCode ?? 0, headers: body.headers };
    if (!isRedirect(head)) return { url: source.url, head, body };
    body.destroy();
    if (redirects === outside.maxRedirects) throw fail('import_upstream_failed', { detail: `The server redirects more than ${outside.maxRedirects} times.` });
    source = readRedirect(source.url, body.headers.location);
    onRedirect();
  }
}

async function openHop(outside: Outside, source: Source, signal: AbortSignal): Promise<IncomingMessage> {
  const socket = await connect({ source, addresses: await checkedAddresses(outside, source, signal), rules: outside.addresses, signal });
  try {
    return await ask(socket, source, outside.userAgent, signal);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Promise: where a name has several addresses, all of them are public; one that is not makes the others suspect. */
async function checkedAddresses({ names, addresses: rules, deniedPorts }: Outside, source: Source, signal: AbortSignal): Promise<string[]> {
  if (!isAllowedPort(source.port, deniedPorts)) throw blocked(`Port ${source.port} may not be imported from.`);
  const addresses = source.isAddress ? [source.host] : await names.lookUp(source.host, signal);
  if (!addresses.every((address) => isAllowedAddress(address, rules))) throw blocked('The URL leads to an address that may not be imported from.');
  return addresses;
}

async function ask(socket: Socket, { url }: Source, userAgent: string, signal: AbortSignal): Promise<IncomingMessage> {
  const request = httpRequest({
    // The connection is made, secured and checked: no agent, no proxy and no second look-up come between.
    createConnection: () => socket,
    path: `${url.pathname}${url.search}`,
    headers: { Host: url.host, 'User-Agent': userAgent, Accept: '*/*', 'Accept-Encoding': 'identity', Connection: 'close' },
    setHost: false, maxHeaderSize: headerBytes, insecureHTTPParser: false,
  });
  ignoreLateErrors(request);
  const response = once<IncomingMessage>(request, 'response').then((message) => {
    ignoreLateErrors(message);
    return message;
  }, (error: unknown) => { throw fail('import_upstream_failed', { detail: 'The server did not answer in HTTP, or broke off.' }, error); });
  request.end();
  return orAborted(response, signal);
}
