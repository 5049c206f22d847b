/** A collector of OpenTelemetry spans: takes what the standard exporter sends (OTLP over HTTP, protobuf) and keeps it. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  /** 2 for a server's, 3 for a client's. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface SpanCollector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  /** Everything that was sent, for a search. */
  readonly bodies: Buffer[];
  close(): void;
}

export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: CollectedSpan[] = [];
  const bodies: Buffer[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
      const body = Buffer.concat(chunks);
      bodies.push(body);
      spans.push(...readSpans(body));
      response.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, bodies, close: () => void server.close().closeAllConnections() };
}

type Fields = Map<number, (Buffer | bigint)[]>;

/** The fields of a protobuf message: numbers of variable length, and stretches of bytes. */
function readFields(message: Buffer): Fields {
  const fields: Fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const fixed = { 1: 8, 5: 4 }[tag & 7];
    const length = (tag & 7) === 2 ? Number(varint()) : fixed;
    const value = length === undefined ? varint() : message.subarray(at, (at += length));
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value]);
  }
  return fields;
}

const messages = (fields: Fields, number: number) => (fields.get(number) ?? []).map((value) => readFields(value as Buffer));
const text = (fields: Fields, number: number) => ((fields.get(number)?.[0] as Buffer | undefined) ?? Buffer.alloc(0));

function readAttributes(fields: Fields, number: number): Record<string, string> {
  return Object.fromEntries(messages(fields, number).map((pair) => {
    const [value] = messages(pair, 2);
    const [known] = value ? [...value.values()] : [];
    return [text(pair, 1).toString(), String(known?.[0] ?? '')];
  }));
}

function readSpans(body: Buffer): CollectedSpan[] {
  return messages(readFields(body), 1).flatMap((resourceSpans) => {
    const service = readAttributes(messages(resourceSpans, 1)[0]!, 1)['service.name'] ?? '';
    return messages(resourceSpans, 2).flatMap((scope) => messages(scope, 2)).map((span) => ({
      service, name: text(span, 5).toString(), kind: Number(span.get(6)?.[0] ?? 0), traceId: text(span, 1).toString('hex'), spanId: text(span, 2).toString('hex'),
      parentSpanId: text(span, 4).toString('hex'), attributes: readAttributes(span, 9),
    }));
  });
}
