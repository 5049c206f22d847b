/** A TCP proxy that stands between our processes and a server, and breaks what passes through it. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';

/** What happens to connections. `cutUp` and `cutDown` end one after so many bytes to the server, or from it. */
export type Weather =
  | { kind: 'fair' }
  | { kind: 'refuse' }
  | { kind: 'silent' }
  | { kind: 'cutUp' | 'cutDown'; after: number };

export interface FaultProxy {
  /** Where it listens. */
  readonly url: string;
  /** Changes what happens from now on; connections that are open are ended. */
  set(weather: Weather): void;
  /** Connections of clients that are open at the moment. */
  open(): number;
  close(): Promise<void>;
}

export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const { hostname, port } = new URL(target);
  const clients = new Set<Socket>();
  let weather: Weather = { kind: 'fair' };

  const server: Server = createServer((client) => {
    clients.add(client);
    client.on('error', () => undefined).on('close', () => clients.delete(client));
    if (weather.kind === 'refuse') return client.destroy();
    if (weather.kind === 'silent') return client.resume();
    const upstream = connect(Number(port), hostname);
    upstream.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.on('close', () => upstream.destroy());
    forward(client, upstream, weather.kind === 'cutUp' ? weather.after : Infinity);
    forward(upstream, client, weather.kind === 'cutDown' ? weather.after : Infinity);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    set(next) {
      weather = next;
      for (const client of clients) client.destroy();
    },
    open: () => clients.size,
    async close() {
      for (const client of clients) client.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Passes bytes on with back-pressure, up to a limit; the byte after it ends both. */
function forward(from: Socket, to: Socket, limit: number): void {
  let left = limit;
  from.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) return void to.end(chunk.subarray(0, chunk.length + left), () => { from.destroy(); to.destroy(); });
    if (!to.write(chunk)) {
      from.pause();
      to.once('drain', () => from.resume());
    }
  });
  from.on('end', () => to.end());
}
