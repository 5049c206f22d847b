/** The operations that lanes repeat: plain requests, a planned upload, a multipart upload. */
import type { Answer, Connection } from './connection.ts';
import type { Flow, Wire } from './job.ts';

/** What one operation moved: body bytes, and the last JSON answer's text. */
export interface Done {
  readonly bytes: number;
  readonly body: Buffer;
}

/** Runs one operation; answers undefined when there is nothing left to do. */
export type Operation = () => Promise<Done | undefined>;

/** Answers how to make a lane. Lanes share the list of requests. */
export function makeFlow(flow: Flow, connect: () => Connection): () => Operation {
  switch (flow.kind) {
    case 'requests': {
      const next = inTurn(flow.requests, flow.once ?? false);
      return () => sendRequests(flow, next, connect());
    }
    case 'single':
      return () => sendSingle(flow, connect());
    case 'multipart':
      return () => sendMultipart(flow, Array.from({ length: flow.parallel }, connect));
  }
}

function inTurn(requests: readonly Wire[], once: boolean): () => Wire | undefined {
  let turn = 0;
  return () => requests[once ? turn++ : turn++ % requests.length];
}

function sendRequests({ status, size }: Flow & { kind: 'requests' }, next: () => Wire | undefined, connection: Connection): Operation {
  return async () => {
    const wire = next();
    if (!wire) return undefined;
    const answer = await connection.send(wire);
    expect(answer, status);
    if (size !== undefined && answer.size !== size) throw new Error(`${answer.size} bytes arrived in place of ${size}`);
    return { bytes: answer.size + (wire.bytes ?? 0), body: answer.body };
  };
}

function sendSingle({ plan, size }: Flow & { kind: 'single' }, connection: Connection): Operation {
  return async () => {
    const { upload } = json(expect(await connection.send(plan), 201)) as { upload: { method: string; url: string; headers: Record<string, string> } };
    const { pathname, search } = new URL(upload.url);
    const { body } = expect(await connection.send({ method: upload.method, path: pathname + search, headers: upload.headers, bytes: size }), 201);
    return { bytes: size, body };
  };
}

function sendMultipart({ init, size, partSize, headers }: Flow & { kind: 'multipart' }, connections: readonly Connection[]): Operation {
  const [first] = connections as [Connection];
  return async () => {
    const { uploadId } = json(expect(await first.send(init), 201)) as { uploadId: string };
    let at = 0;
    const sendParts = async (connection: Connection) => {
      while (at < size) {
        const from = at;
        const bytes = Math.min(partSize, size - from);
        at += bytes;
        const path = `/api/upload/multipart/part?uploadId=${uploadId}&partNumber=${from / partSize + 1}`;
        expect(await connection.send({ method: 'POST', path, headers: { ...headers, 'Content-Type': 'application/octet-stream' }, bytes, from }), 200);
      }
    };
    await Promise.all(connections.map(sendParts));
    const { body } = expect(await first.send({ method: 'POST', path: '/api/upload/multipart/complete', headers: { ...headers, 'Content-Type': 'application/json' }, text: JSON.stringify({ uploadId }) }), 201);
    return { bytes: size, body };
  };
}

function expect(answer: Answer, status: number): Answer {
  if (answer.status === status) return answer;
  const code = /"code":"(\w+)"/.exec(answer.body.toString('latin1'))?.[1];
  throw new Error(`${answer.status}${code ? ` ${code}` : ''}`);
}

function json({ body }: Answer): unknown {
  return JSON.parse(body.toString('utf8'));
}
