/** A way to the exchange on which connections break: after so many bytes, in either direction, without a word. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly url: string;
  /** Where connections go, in turn. */
  readonly targets: string[];
  /** Each of the next connections breaks once so many bytes have passed; those after them stay whole. Without a number, all do. */
  cutAfter(...bytes: number[]): void;
  /** How many connections were broken. */
  cuts(): number;
  close(): Promise<void>;
}

interface Joined {
  /** Bytes that may still pass. */
  left: number;
  end(): void;
}

export async function startCuttingProxy(): Promise<CuttingProxy> {
  const targets: string[] = [];
  const open = new Set<Joined>();
  let budgets: number[] = [];
  let cuts = 0;
  let turn = 0;

  function join(client: Socket): void {
    const { hostname, port } = new URL(targets[turn++ % targets.length]!);
    const server = connect({ host: hostname, port: Number(port) });
    const joined: Joined = {
      left: budgets.shift() ?? Infinity,
      end() {
        open.delete(joined);
        client.destroy();
        server.destroy();
      },
    };
    open.add(joined);
    pass(client, server, joined);
    pass(server, client, joined);
  }

  function pass(from: Socket, to: Socket, joined: Joined): void {
    to.on('drain', () => from.resume());
    from.on('close', joined.end).on('error', joined.end).on('data', (bytes: Buffer) => {
      const isLast = bytes.length > joined.left;
      if (!to.write(bytes.subarray(0, isLast ? joined.left : bytes.length))) from.pause();
      joined.left -= Math.min(joined.left, bytes.length);
      if (!isLast) return;
      cuts += 1;
      // What has passed so far arrives; then both sides find the connection gone.
      to.end(joined.end);
    });
  }

  const server = createServer(join).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    targets,
    cutAfter(...bytes) {
      budgets = bytes;
      for (const joined of open) {
        if (bytes.length > 0) joined.end();
        else joined.left = Infinity;
      }
    },
    cuts: () => cuts,
    async close() {
      for (const joined of open) joined.end();
      server.close();
      await once(server, 'close');
    },
  };
}
