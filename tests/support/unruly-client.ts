/** Clients that do what `fetch` does not: leave in the middle of a body, ask before they send, read slowly. */
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';

export interface Sending {
  readonly method: string;
  readonly headers?: Record<string, string>;
}

function head(url: URL, { method, headers }: Sending): string {
  const lines = Object.entries({ Host: url.host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/**
 * Announces `announced` bytes, sends fewer and hangs up. Resolves when the exchange has noticed:
 * it closes its own side only after that.
 */
export function leaveMidBody(address: string, sending: Sending & { announced: number }, sent: Uint8Array): Promise<void> {
  const url = new URL(address);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port), allowHalfOpen: true });
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? resolve() : reject(error)));
    socket.on('close', () => resolve());
    socket.on('end', () => socket.destroy());
    socket.resume();
    socket.write(head(url, { ...sending, headers: { ...sending.headers, 'Content-Length': String(sending.announced) } }));
    socket.write(sent, () => socket.end());
  });
}

/** Sends headers alone and answers the status line's status and the body: for refusals that come before the body. */
export function sendHeadersOnly(address: string, sending: Sending): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(address, { ...sending, agent: false }, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (chunk: string) => { text += chunk; }).on('end', () => {
        resolve({ status: incoming.statusCode!, text });
        outgoing.destroy();
      });
    });
    outgoing.on('error', reject);
    outgoing.flushHeaders();
  });
}

/** Sends `Expect: 100-continue` and the body only when told to go on, and then as late as `hesitate` says. Answers whether it was told, and the final answer. */
export function askBeforeSending(address: string, sending: Sending, body: Uint8Array, hesitate: () => Promise<void> = async () => undefined): Promise<{ status: number; text: string; wasTold: boolean }> {
  return new Promise((resolve, reject) => {
    let wasTold = false;
    const outgoing = request(address, {
      ...sending, agent: false, headers: { ...sending.headers, 'Expect': '100-continue', 'Content-Length': String(body.length) },
    }, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (chunk: string) => { text += chunk; }).on('end', () => {
        resolve({ status: incoming.statusCode!, text, wasTold });
        outgoing.destroy();
      });
    });
    outgoing.on('continue', () => {
      wasTold = true;
      hesitate().then(() => outgoing.end(body), reject);
    });
    outgoing.on('error', reject);
    outgoing.flushHeaders();
  });
}

/** Begins a download and reads nothing of its body yet: the rest is read by whoever resumes the answer. */
export function beginDownload(address: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(address, { agent: false, headers }, (incoming) => resolve(incoming.pause())).on('error', reject).end();
  });
}
