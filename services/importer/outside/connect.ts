/** Connects to an address that was checked, and to no other: no name is looked up here, and who answers is looked at once more. */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ignoreLateErrors } from '../../../shared/blobs/watch-sink.ts';
import { fail } from '../../../shared/errors.ts';
import { isAllowedAddress, isSameAddress, type AddressSettings } from '../domain/address-rules.ts';
import { blocked, type Source } from '../domain/source-url.ts';
import { once, orAborted, reasonOf } from './abort.ts';

/** How long one of several addresses is tried, and how many of them. */
const tryMs = 3_000;
const maxTries = 4;

export interface Connecting {
  readonly source: Source;
  /** All of them were checked. */
  readonly addresses: readonly string[];
  readonly rules: AddressSettings;
  readonly signal: AbortSignal;
}

/**
 * A connection over which a request may be sent; for https, with the server's certificate checked against the host of the URL.
 * @throws import_upstream_failed, import_timed_out, import_url_blocked
 */
export async function connect(connecting: Connecting): Promise<Socket> {
  const socket = await connectToOne(connecting);
  const { source, signal } = connecting;
  if (!source.isSecure) return socket;
  const name = source.host.replace(/\.$/, '');
  // Said outright, since a variable of the environment could say otherwise.
  const secure = connectTls({ socket, host: name, servername: source.isAddress ? '' : name, rejectUnauthorized: true, ALPNProtocols: ['http/1.1'] });
  return whenReady(secure, 'secureConnect', signal, 'No secure connection to the server could be made: its certificate is not valid for this host, or its TLS is not of this age.');
}

async function connectToOne({ source, addresses, rules, signal }: Connecting): Promise<Socket> {
  let failure: unknown;
  for (const address of addresses.slice(0, maxTries)) {
    const attempt = AbortSignal.any([signal, AbortSignal.timeout(tryMs)]);
    const socket = connectTcp({ host: address, port: source.port, autoSelectFamily: false });
    try {
      await whenReady(socket, 'connect', attempt, 'The server could not be connected to.');
      requireChecked(socket, address, rules);
      return socket;
    } catch (error) {
      socket.destroy();
      failure = error;
      if (signal.aborted) throw reasonOf(signal);
    }
  }
  throw failure;
}

/** Promise: whatever stood in the way between the check and the connection, nothing is sent to an address that may not be connected to. */
function requireChecked({ remoteAddress = '' }: Socket, address: string, rules: AddressSettings): void {
  if (!isSameAddress(remoteAddress, address) || !isAllowedAddress(remoteAddress, rules)) throw blocked('The connection led to another address than was checked.');
}

async function whenReady(socket: Socket, event: string, signal: AbortSignal, detail: string): Promise<Socket> {
  ignoreLateErrors(socket);
  try {
    await orAborted(once(socket, event).catch((error: unknown) => { throw fail('import_upstream_failed', { detail }, error); }), signal);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
