/** What a supervisor asks a process: /livez whether it runs, /readyz whether it can work, /metrics what it measured. Never about others: an outage elsewhere must not end this process. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Metrics } from './metrics.ts';

/** Answers on every address of the machine; callers' requests come in elsewhere. Answers the port. It holds up no stop. */
export async function answerProbes(port: number, isReady: () => Promise<boolean>, metrics: Metrics): Promise<number> {
  const server = createServer((request, response) => {
    if (request.url === '/livez') say(response, true);
    else if (request.url === '/readyz') void isReady().catch(() => false).then((ready) => say(response, ready));
    else if (request.url === '/metrics') void metrics.metrics().then((text) => response.writeHead(200, { 'Content-Type': metrics.contentType }).end(text), () => response.writeHead(500).end());
    else response.writeHead(404).end();
  });
  await new Promise<void>((listening, refused) => server.once('error', refused).listen(port, listening));
  return (server.unref().address() as AddressInfo).port;
}

function say(response: ServerResponse, ok: boolean): void {
  response.writeHead(ok ? 200 : 503, { 'Content-Type': 'text/plain', 'Cache-Control': 'no-store' }).end(ok ? 'ok\n' : 'not ready\n');
}
