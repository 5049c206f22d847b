/** HTTP as bytes on a socket, for requests that no client library would send. */
import { connect, type Socket } from 'node:net';

/** A response as it stood on the wire; header names in lower case. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawConnection {
  send(bytes: string | Uint8Array): void;
  /** Waits until so many responses, interim ones included, are complete, or the other side ended the connection. */
  responses(count: number): Promise<RawResponse[]>;
  /** Waits until the other side ended the connection; answers all responses that came. */
  untilClosed(): Promise<RawResponse[]>;
  isClosed(): boolean;
  close(): void;
}

const patienceMs = 25_000;

export async function openRaw(baseUrl: string): Promise<RawConnection> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const received: Buffer[] = [];
  let closed = false;
  socket.on('data', (bytes: Buffer) => received.push(bytes));
  socket.on('end', () => { closed = true; });
  socket.on('close', () => { closed = true; });
  // A reset is one of the ways in which the other side ends a connection.
  socket.on('error', () => { closed = true; });
  await new Promise<void>((resolve) => { socket.once('connect', resolve).once('error', () => resolve()); });
  const all = () => parseResponses(Buffer.concat(received).toString('latin1'));
  return {
    send: (bytes) => { socket.write(bytes); },
    async responses(count) {
      await until(socket, () => closed || all().length >= count);
      return all();
    },
    async untilClosed() {
      await until(socket, () => closed);
      return all();
    },
    isClosed: () => closed,
    close: () => { socket.destroy(); },
  };
}

/** Sends bytes on a connection of their own, waits for so many responses, and hangs up. */
export async function sendRaw(baseUrl: string, bytes: string | Uint8Array, count = 1): Promise<RawResponse[]> {
  const connection = await openRaw(baseUrl);
  try {
    connection.send(bytes);
    return await connection.responses(count);
  } finally {
    connection.close();
  }
}

async function until(socket: Socket, isDone: () => boolean): Promise<void> {
  const end = Date.now() + patienceMs;
  while (!isDone()) {
    if (Date.now() > end) throw new Error('nothing more came on the connection');
    await new Promise<void>((resolve) => {
      const timer = setTimeout(wake, 250);
      function wake() {
        clearTimeout(timer);
        for (const event of ['data', 'end', 'close', 'error']) socket.off(event, wake);
        resolve();
      }
      for (const event of ['data', 'end', 'close', 'error']) socket.once(event, wake);
    });
  }
}

/** The complete responses at the start of a text. */
function parseResponses(text: string): RawResponse[] {
  const found: RawResponse[] = [];
  let rest = text;
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd < 0) return found;
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n');
    const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]));
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1] ?? NaN);
    const isEmpty = status < 200 || status === 204 || status === 304;
    const length = isEmpty ? 0 : Number(headers['content-length'] ?? NaN);
    const after = rest.slice(headEnd + 4);
    if (Number.isNaN(status)) throw new Error(`not a response: ${statusLine.slice(0, 80)}`);
    if (Number.isNaN(length)) {
      // Without a length the body lasts until the end of the connection.
      found.push({ status, headers, body: after });
      return found;
    }
    if (after.length < length) return found;
    found.push({ status, headers, body: after.slice(0, length) });
    rest = after.slice(length);
  }
}
