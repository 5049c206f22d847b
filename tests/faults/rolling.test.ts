/** Two of every service; each is restarted in turn while callers go on: a request is lost by none of it. */
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt } from '../support/exchange.ts';
import { figure, sleep } from '../support/fault-stack.ts';
import type { Flow } from '../support/load.ts';
import { follow, readFrom, sendTo, type Pipe, type Reader } from '../support/pipes.ts';
import { openBalancer, openSteadyWire, restart, startReplicated, type Balancer, type Replicated } from '../support/replicas.ts';
import { allowPublic, startSourceServer, type SourceServer } from '../support/source-server.ts';
import type { Actors } from '../support/steps.ts';
import { brokenPromises, makeActors, storm, unbroken } from '../support/storm.ts';

const perSecond = figure(100, 200);
const rounds = figure(3, 20);
const MiB = 1_024 ** 2;
/** More than the sockets between two processes hold, so that a reader that pauses holds up the answer. */
const slowSize = 24 * MiB;
const pauseMs = 100;
const everyone = Object.fromEntries(['page', 'create', 'bytes', 'fetch', 'read', 'auth'].map((name) => [`RATE_LIMIT_${name.toUpperCase()}`, '1000000/60']));

let running: Replicated;
let balancer: Balancer;
let source: SourceServer;
beforeAll(async () => {
  source = await startSourceServer({ slow: (_request, response) => { response.write('slow '); setTimeout(() => response.end('text'), 6 * pauseMs); } });
  running = await startReplicated({
    // Leases of limits are taken and spent, though none is reached.
    gateway: { RATE_LIMITS: 'on', ...everyone, LEAVE_SECONDS: '1', DRAIN_SECONDS: '60' },
    importer: { ...allowPublic, IMPORT_CONCURRENCY: '128' },
  });
  balancer = openBalancer(running.replicas);
});
afterAll(async () => {
  balancer?.close();
  source?.close();
  await running?.end();
});

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** What a flow found otherwise than an undisturbed run gives. */
function unlessAsExpected({ ledger }: Actors, what: string, isGood: boolean, found: unknown): void {
  if (!isGood) ledger.surprises.push(`${what}: ${JSON.stringify(found)}`);
}

/** Reads slowly, and answers the digest of all that came. */
async function readSlowly(reader: Reader): Promise<{ digest: string; isWhole: boolean }> {
  const hash = createHash('sha256');
  for (let chunk = await reader.take(MiB); chunk.length > 0; chunk = await reader.take(MiB)) {
    hash.update(chunk);
    await sleep(pauseMs);
  }
  return { digest: hash.digest('hex'), isWhole: (await reader.rest()).isWhole };
}

/** Fetches a large transfer as slowly as it may take several restarts. */
async function download(actors: Actors, path: string, digest: string): Promise<void> {
  const found = await readSlowly(await readFrom(balancer.choose() + path));
  unlessAsExpected(actors, 'a slow download', found.isWhole && found.digest === digest, found);
}

/** A pipe that is written over several restarts, and read through whichever gateway. */
async function pipe(actors: Actors): Promise<void> {
  const { json: made } = await actors.wire.send('/api/pipe', { json: {}, bearer: actors.session }) as { json: Pipe };
  const sender = sendTo(made, { at: balancer.choose() });
  const sent = Array.from({ length: 20 }, () => randomBytes(10_000));
  await sender.write(sent[0]!);
  const reading = follow(made, { at: balancer.choose() }).then((reader) => reader.rest());
  for (const piece of sent.slice(1)) {
    await sleep(pauseMs);
    await sender.write(piece);
  }
  const [told, read] = await Promise.all([sender.end(), reading]);
  unlessAsExpected(actors, 'a pipe', told.status === 200 && read.isWhole && read.bytes.equals(Buffer.concat(sent)), { told, size: read.bytes.length, isWhole: read.isWhole });
}

/** Some are always under way, so that a stop of the importer meets them. */
async function importSlowly(actors: Actors): Promise<void> {
  const reply = await actors.wire.send('/api/import-url', { json: { url: source.url('/slow') }, bearer: actors.session });
  unlessAsExpected(actors, 'an import', reply.status === 201, reply.json);
}

const uploadByTool: Flow = async (actors) => {
  const { json } = await actors.wire.send('/mcp', { json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'upload_text', arguments: { text: 'rolling' } } }, bearer: actors.session });
  unlessAsExpected(actors, 'a tool', json?.result?.isError !== true && json?.result?.structuredContent !== undefined, json);
};

function fetchLarge(path: string, digest: string): Flow {
  return async (actors) => {
    const reply = await actors.wire.send(path);
    unlessAsExpected(actors, 'a fetch of 1 MiB', reply.status === 200 && sha256(reply.bytes) === digest, reply.status);
  };
}

describe('rolling restarts', () => {
  test(`${rounds} of each service at ${perSecond} requests a second lose no request`, { timeout: 3_600_000 }, async () => {
    const { stack, replicas } = running;
    const wire = openSteadyWire(stack.baseUrl, balancer, perSecond);
    const actors = await makeActors(stack, wire);
    const store = async (bytes: Buffer) => {
      const { id, shareId } = await exchangeAt(stack.baseUrl, stack.owner).upload(bytes, {}, actors.session);
      return { path: `/api/dl/${id}?share_id=${shareId}`, digest: sha256(bytes) };
    };
    const [large, huge] = [await store(randomBytes(MiB)), await store(randomBytes(slowSize))];
    const statuses: (number | null)[] = [];
    const longOnes = { download: 0, pipe: 0, import: 0 };
    await storm(actors, async () => {
      let goesOn = true;
      const again = async (name: keyof typeof longOnes, work: () => Promise<void>) => { for (; goesOn; longOnes[name] += 1) await work().catch((error: unknown) => unlessAsExpected(actors, name, false, String(error))); };
      const long = Promise.all([again('download', () => download(actors, huge.path, huge.digest)), again('pipe', () => pipe(actors)), ...Array.from({ length: 4 }, () => again('import', () => importSlowly(actors)))]);
      for (let round = 0; round < rounds; round += 1) {
        for (const replica of replicas) statuses.push(await restart(replica));
      }
      goesOn = false;
      await long;
    }, [fetchLarge(large.path, large.digest), uploadByTool, fetchLarge(large.path, large.digest)]);
    wire.unbound();
    process.stdout.write(`${statuses.length} restarts, ${wire.failures.length} failures, ${actors.ledger.surprises.length} surprises, ${[...wire.statuses.values()].reduce((sum, count) => sum + count, 0)} requests, ${JSON.stringify(longOnes)}\n`);
    expect(wire.failures).toEqual([]);
    expect(statuses).toEqual(statuses.map(() => 0));
    expect(await brokenPromises(actors, stack)).toEqual(unbroken);
    expect(stack.crashes).toEqual([]);
  });
});
