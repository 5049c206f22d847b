/** A name server of the tests' own: it answers what it is told, and may answer otherwise the next time. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { isIPv4 } from 'node:net';

/** Addresses of a name, or the function that answers its n-th question (from 0) for one family. `refused` and silence are answers, too. */
export type Records = readonly string[] | 'refused' | 'silence' | ((asked: number) => readonly string[]);

export interface DnsServer {
  /** As IMPORT_DNS_SERVERS wants it. */
  readonly address: string;
  /** How often a name was asked for, both families together. */
  asked(name: string): number;
  close(): void;
}

const family = { a: 1, aaaa: 28 } as const;
const code = { ok: 0, noName: 3, refused: 5 } as const;

export async function startDnsServer(zone: Readonly<Record<string, Records>>): Promise<DnsServer> {
  const questions: { name: string; type: number }[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port }) => {
    const { name, type, end } = readQuestion(query);
    const asked = questions.filter((one) => one.name === name && one.type === type).length;
    questions.push({ name, type });
    const records = zone[name];
    if (records === 'silence') return;
    const found = typeof records === 'function' ? records(asked) : records;
    const addresses = Array.isArray(found) ? (found as string[]).filter((one) => (isIPv4(one) ? family.a : family.aaaa) === type) : [];
    socket.send(answerTo(query.subarray(0, end), addresses, found === 'refused' ? code.refused : found ? code.ok : code.noName), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    asked: (name) => questions.filter((one) => one.name === name).length,
    close: () => socket.close(),
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** The question with its answers behind it; each names the question's own name and lives for no time at all. */
function answerTo(question: Buffer, addresses: readonly string[], result: number): Buffer {
  const head = Buffer.from(question.subarray(0, 12));
  head.writeUInt16BE(0x8180 | result, 2);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, question.subarray(12), ...addresses.map(recordOf)]);
}

function recordOf(address: string): Buffer {
  const bytes = isIPv4(address) ? address.split('.').map(Number) : bytesOfIpv6(address);
  const record = Buffer.from([0xc0, 12, 0, bytes.length === 4 ? family.a : family.aaaa, 0, 1, 0, 0, 0, 0, 0, bytes.length]);
  return Buffer.concat([record, Buffer.from(bytes)]);
}

function bytesOfIpv6(address: string): number[] {
  const [head = [], tail = []] = address.split('::').map((half) => (half === '' ? [] : half.split(':').map((group) => parseInt(group, 16))));
  const groups = address.includes('::') ? [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail] : head;
  return groups.flatMap((group) => [group >> 8, group & 255]);
}
