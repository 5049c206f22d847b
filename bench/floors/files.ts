/** Floor: a bare node:http file server. GET sends a file; PUT writes one with fsync, answers, and removes it. */
import { createReadStream, createWriteStream } from 'node:fs';
import { stat, unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { receiveSettings, sayReady } from './process.ts';

const { folder } = await receiveSettings();
let written = 0;

async function sendFile(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = join(folder, basename(request.url ?? ''));
  response.setHeader('Content-Length', (await stat(path)).size);
  await pipeline(createReadStream(path), response);
}

async function keepFile(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = join(folder, `in-${written++}`);
  await pipeline(request, createWriteStream(path, { flush: true }));
  response.writeHead(201, { 'Content-Length': 0 }).end();
  await unlink(path);
}

const server = createServer((request, response) => {
  const answer = request.method === 'PUT' ? keepFile : sendFile;
  answer(request, response).catch(() => response.destroy());
});
server.listen(0, '127.0.0.1', () => sayReady((server.address() as AddressInfo).port));
