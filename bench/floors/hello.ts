/** Floor: Fastify answers a small JSON object. No part of the system does less. */
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { receiveSettings, sayReady } from './process.ts';

await receiveSettings();
const app = fastify();
app.get('/hello', async () => ({ hello: 'world' }));
await app.listen({ host: '127.0.0.1', port: 0 });
sayReady((app.server.address() as AddressInfo).port);
