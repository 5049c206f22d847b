/** Floor: Fastify passes each request on over NATS, one plain request-reply each, and the answer back unread. */
import { randomInt } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { connectNats } from './nats.ts';
import { receiveSettings, sayReady } from './process.ts';
import { distinctRows, hotKey } from './rows.ts';

const { natsUrl, subject } = await receiveSettings();
const connection = await connectNats(natsUrl);
const app = fastify();

for (const kind of ['echo', 'select', 'update', 'hot'] as const) {
  app.get(`/${kind}`, async (_request, reply) => {
    const key = kind === 'hot' ? hotKey : randomInt(distinctRows);
    const answer = await connection.request(`${subject}.${kind}`, JSON.stringify({ key }), { timeout: 5_000 });
    return reply.type('application/json; charset=utf-8').send(Buffer.from(answer.data));
  });
}
await app.listen({ host: '127.0.0.1', port: 0 });
sayReady((app.server.address() as AddressInfo).port);
