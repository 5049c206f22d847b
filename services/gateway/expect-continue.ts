/** `Expect: 100-continue`: a client that asks before it sends is told to go on only when its body is wanted. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';

const expecting = Symbol('waits for 100 Continue');

type Asking = IncomingMessage & { [expecting]?: boolean };

/** Routes such requests without an interim answer; a refusal then reaches the client before it sends anything. */
export function holdContinue(app: FastifyInstance): void {
  app.server.on('checkContinue', (request: Asking, response: ServerResponse) => {
    request[expecting] = true;
    app.routing(request, response);
  });
}

/** Tells a waiting client to send its body. */
export function acceptBody(reply: FastifyReply): void {
  const raw = reply.request.raw as Asking;
  if (!raw[expecting]) return;
  raw[expecting] = false;
  reply.raw.writeContinue();
}
