// Finds and checks TCP ports.
import { createServer } from 'node:net';
import { randomInt } from 'node:crypto';
import { StartFailure, systemCode } from './failure.ts';

// Below the range that systems hand to outgoing connections: a client that keeps dialling a server
// which is down could otherwise be given the server's own port, and keep it from coming back.
const lowest = 15_000;
const highest = 30_000;

/** A port of 127.0.0.1 that nobody listens on at this moment. */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const port = randomInt(lowest, highest);
    if ((await bindingError('127.0.0.1', port)) === undefined) return port;
  }
  throw new StartFailure('No free port was found on 127.0.0.1.');
}

/** Throws one sentence when nothing can listen on `host`:`port`; waits up to `patienceMs` for the port to come free. */
export async function checkPort(host: string, port: number, patienceMs = 0): Promise<void> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const code = await bindingError(host, port);
    if (code === undefined) return;
    if (code !== 'EADDRINUSE' || Date.now() >= deadline) throw new StartFailure(portSentence(code, host, port));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function bindingError(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(systemCode(error) ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

function portSentence(code: string, host: string, port: number): string {
  if (code === 'EADDRINUSE') return `Port ${port} is already in use; stop what uses it or choose another with PORT.`;
  if (code === 'EACCES') return `Port ${port} may not be used by this user; choose one above 1023 with PORT.`;
  return `Nothing can listen on HOST ${host}, port ${port} (${code}).`;
}
