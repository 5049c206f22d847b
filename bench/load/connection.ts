/** One keep-alive HTTP/1.1 connection, one request at a time. Knows just enough of HTTP to cost little beside what it measures. */
import { connect, type Socket } from 'node:net';
import type { Wire } from './job.ts';

/** Bodies up to this size are kept to be read; of larger ones only the count. */
const keptUpTo = 64 * 1_024;
const writeStep = 1_024 ** 2;

export interface Answer {
  readonly status: number;
  /** Body bytes that arrived. */
  readonly size: number;
  /** The body when it was small, else empty. */
  readonly body: Buffer;
}

export interface Connection {
  /** Rejects when the connection breaks; the next call makes a new one. */
  send(wire: Wire): Promise<Answer>;
  close(): void;
}

export interface ConnectionOptions {
  readonly port: number;
  /** Random bytes for bodies. */
  readonly block: Buffer;
  /** How many bytes are read at once. */
  readonly readBytes: number;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

export function openConnection(options: ConnectionOptions): Connection {
  const buffer = Buffer.alloc(options.readBytes);
  let socket: Socket | undefined;
  let waiting: Waiting | undefined;
  let read = startAnswer();

  function settle(outcome: (waiting: Waiting) => void): void {
    const settled = waiting;
    waiting = undefined;
    if (settled) outcome(settled);
  }

  function lose(lost: Socket, error: Error): void {
    lost.destroy();
    if (socket !== lost) return;
    socket = undefined;
    settle(({ reject }) => reject(error));
  }

  function dial(): Socket {
    const made: Socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true, onread: { buffer, callback: (count) => take(made, buffer.subarray(0, count)) } });
    made.on('error', (error) => lose(made, error)).on('close', () => lose(made, new Error('the connection was closed')));
    return made;
  }

  function take(from: Socket, chunk: Buffer): boolean {
    try {
      const answer = read(chunk);
      if (answer) settle(({ resolve }) => resolve(answer));
    } catch (error) {
      lose(from, error as Error);
    }
    return true;
  }

  return {
    send(wire) {
      const used = (socket ??= dial());
      read = startAnswer();
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        writeRequest(used, wire, options, () => waiting?.resolve === resolve);
      });
    },
    close: () => socket?.destroy(),
  };
}

function writeRequest(socket: Socket, wire: Wire, { port, block }: ConnectionOptions, isWanted: () => boolean): void {
  const length = wire.bytes ?? Buffer.byteLength(wire.text ?? '');
  const headers = Object.entries(wire.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const head = `${wire.method} ${wire.path} HTTP/1.1\r\nHost: localhost:${port}\r\n${headers}${length > 0 ? `Content-Length: ${length}\r\n` : ''}\r\n`;
  const { bytes, from = 0 } = wire;
  if (bytes === undefined) socket.write(head + (wire.text ?? ''));
  else if (bytes <= keptUpTo) socket.write(Buffer.concat([Buffer.from(head), block.subarray(0, bytes)]));
  else {
    socket.write(head);
    writeBlock(socket, { block, from, to: from + bytes }, isWanted);
  }
}

/** Writes until the socket is full, then goes on when it has drained; stops when nobody waits for the answer any more. */
function writeBlock(socket: Socket, piece: { block: Buffer; from: number; to: number }, isWanted: () => boolean): void {
  const { block, to } = piece;
  let at = piece.from;
  while (at < to && isWanted()) {
    const start = at % block.length;
    const end = Math.min(start + writeStep, block.length, start + to - at);
    at += end - start;
    if (!socket.write(block.subarray(start, end)) && at < to) {
      socket.once('drain', () => writeBlock(socket, { block, from: at, to }, isWanted));
      return;
    }
  }
}

/** Reads one answer from its chunks. Answers undefined until it is whole; chunks are not kept, since their memory is used again. */
function startAnswer(): (chunk: Buffer) => Answer | undefined {
  let head: Buffer | undefined = Buffer.alloc(0);
  let status = 0;
  let length = 0;
  let size = 0;
  const kept: Buffer[] = [];
  return (chunk) => {
    let body = chunk;
    if (head) {
      const seen: Buffer = head.length > 0 ? Buffer.concat([head, chunk]) : chunk;
      const end = seen.indexOf('\r\n\r\n');
      if (end < 0) {
        head = Buffer.from(seen);
        return undefined;
      }
      ({ status, length } = readHead(seen.toString('latin1', 0, end)));
      head = undefined;
      body = seen.subarray(end + 4);
    }
    size += body.length;
    if (length <= keptUpTo) kept.push(Buffer.from(body));
    return size < length ? undefined : { status, size, body: kept.length === 1 ? kept[0]! : Buffer.concat(kept) };
  };
}

function readHead(head: string): { status: number; length: number } {
  const status = Number(head.slice(9, 12));
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined && status !== 204) throw new Error(`answer ${status} without Content-Length`);
  return { status, length: Number(length ?? 0) };
}
