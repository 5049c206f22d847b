/** A server that URLs are imported from, on an address that the importer is told to take for public. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Counts as public in a stack with `IMPORT_ALLOW_RANGES` of it; everything else of this machine does not. */
export const publicAddress = '127.7.7.7';
export const allowPublic = { IMPORT_ALLOW_RANGES: `${publicAddress}/32` };

export type Page = (request: IncomingMessage, response: ServerResponse) => void;

export interface SourceServer {
  readonly origin: string;
  readonly port: number;
  /** The address of a page. */
  url(path: string): string;
  /** Heads of all requests that came. */
  readonly requests: IncomingMessage[];
  close(): void;
}

/** Serves pages by the first part of their path; `/text` is always there, and `/to/<address>` redirects to it. */
export async function startSourceServer(pages: Readonly<Record<string, Page>> = {}, address = publicAddress): Promise<SourceServer> {
  const requests: IncomingMessage[] = [];
  const all: Readonly<Record<string, Page>> = { text: (_request, response) => response.setHeader('content-type', 'text/plain').end('imported text'), to: redirect, ...pages };
  const listener: RequestListener = (request, response) => {
    requests.push(request);
    const page = all[/^\/([\w-]+)/.exec(request.url!)?.[1] ?? ''];
    if (page) page(request, response);
    else response.writeHead(404).end('not here');
  };
  const { server, port } = await listenOn(createServer(listener), address);
  const origin = `http://${address}:${port}`;
  return {
    origin, port, requests, url: (path) => `${origin}${path}`,
    close: () => {
      server.close();
      (server as ReturnType<typeof createServer>).closeAllConnections();
    },
  };
}

/** `/to/2/<address>` redirects to itself twice before. */
function redirect({ url }: IncomingMessage, response: ServerResponse): void {
  const [, left = '0', encoded = ''] = /^\/to\/(\d+)\/(.*)$/.exec(url!) ?? [];
  const location = left === '0' ? decodeURIComponent(encoded) : `/to/${Number(left) - 1}/${encoded}`;
  // As servers do that know of nothing but bytes.
  response.writeHead(302, { location: Buffer.from(location).toString('latin1') }).end('look elsewhere');
}

/** The path of a page that leads to an address by so many redirects. */
export function behind(redirects: number, address: string): string {
  return `/to/${redirects - 1}/${encodeURIComponent(address)}`;
}

export async function listenOn(server: Server, host: string, port = 0): Promise<{ server: Server; port: number }> {
  server.listen(port, host);
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** Says these bytes to whoever connects, for what no well-behaved server would say. `then` may go on. */
export async function startRawServer(say: (socket: Socket) => void): Promise<SourceServer['origin']> {
  const { server, port } = await listenOn(createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => say(socket));
  }), publicAddress);
  server.unref();
  return `http://${publicAddress}:${port}`;
}

export interface Canaries {
  readonly port: number;
  /** Connections that any of them accepted. */
  readonly accepted: string[];
  close(): void;
}

/** Listeners that nobody may ever reach, on every private address of this machine that has the one port free. */
export async function startCanaries(addresses: readonly string[], others: readonly (readonly [string, number])[] = []): Promise<Canaries> {
  const accepted: string[] = [];
  const servers: Server[] = [];
  const listen = async (address: string, wanted: number) => {
    const canary = createTcpServer((socket) => {
      accepted.push(`${address}:${socket.localPort}`);
      socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret');
    });
    const { server, port } = await listenOn(canary, address, wanted);
    servers.push(server);
    return port;
  };
  const port = await listen(addresses[0]!, 0);
  for (const address of addresses.slice(1)) await listen(address, port);
  // Some of these may be taken by a real service, which is as private.
  for (const [address, other] of others) await listen(address, other).catch(() => undefined);
  return { port, accepted, close: () => servers.forEach((server) => server.close()) };
}
