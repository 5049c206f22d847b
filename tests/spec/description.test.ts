/** The interface description holds for whatever is sent: random inputs to every operation of /openapi.json, good and bad (interface chapters: Endpoints, Errors). */
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { makeCast, type Cast } from '../support/cast.ts';
import { sharedExchange, type Answer, type Request } from '../support/exchange.ts';
import { randomInput, type RandomInput, type Scene, type Schema } from '../support/random-input.ts';
import { targetsOf, type Target } from '../support/targets.ts';

const exchange = sharedExchange();
const { call, must } = exchange;

/** AEX_FUZZ_SEED repeats a run; AEX_FUZZ_ROUNDS makes it longer. */
const seed = Number(process.env['AEX_FUZZ_SEED'] ?? 20_260_101);
const rounds = Number(process.env['AEX_FUZZ_ROUNDS'] ?? 40);

interface Content { readonly schema: Schema & { readonly $ref?: string } }
interface Response { readonly 'content'?: Readonly<Record<string, Content>>; readonly 'x-error-codes'?: readonly string[] }
interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required: boolean; readonly schema: Schema }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, Response>>;
}
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: { readonly Problem: Schema } };
}

/** Every operation of the interface; the table of authorisation.test.ts fails when this list is too short. */
const methods = ['get', 'head', 'post', 'put', 'patch', 'delete'];
let description: Description;
let cast: Cast;
beforeAll(async () => {
  description = (await must('/openapi.json')).json as Description;
  cast = await makeCast(exchange);
});

const endsSessions = /^(DELETE \/api\/owner\/sessions?|POST \/api\/owner\/password)$/;

/** Retired, without a provider to sign in at, wanting a password that is nobody's, and without an upload that is sent straight to a store. */
const refusedAlways = ['POST /api/owner/password', 'GET /api/owner/oidc/start', 'GET /api/owner/oidc/callback', 'POST /api/upload/multipart/direct-urls', 'POST /api/upload', 'POST /api/tus'];

const meaningful = ['text/plain', 'application/json; charset=utf-8', 'image/*', 'a.txt', 'open sesame', '*', '"1"', 'bytes=0-3', 'a'.repeat(64), 'b'.repeat(32)];

/** Things that exist, each with everything that a good request about it says. */
async function makeScenes(path: string): Promise<Scene[]> {
  const { owner, named } = cast;
  const targets = targetsOf(exchange, cast);
  const made: Target[] = await Promise.all([
    targets.openShare(), targets.agentShare(), targets.granted(), targets.transferByAgent(), targets.key(), targets.group(), targets.permission(), targets.plan(), targets.upload(), targets.plannedUpload(),
    ...(/^\/api\/(folder|dl)\b/.test(path) ? [targets.folder(), targets.agentFolder()] : []),
  ]);
  const always = {
    view: 'completion', agentKey: named.key, fromAgentId: named.agentId, partNumber: '1', url: inject('sourceUrl'),
    ...(path === '/api/owner/session' && { email: owner.email, password: owner.password }),
    ...(path.includes('{groupId}') && { name: 'renamed' }),
  };
  const { pipeId, deleteToken } = await targets.pipe();
  // Not what is fetched: it would wait for its sender.
  made.push({ pipeId: pipeId!, deleteToken: deleteToken! });
  return made.map((target) => ({
    ...always, ...target, agentId: path.endsWith('{agentId}') ? 'member' : target['agentId'] ?? named.agentId,
    ...Object.fromEntries(Object.entries(aliases).flatMap(([alias, name]) => (target[name] ? [[alias, target[name]]] : []))),
  }));
}
const aliases = { 'share_id': 'shareId', 'X-Access-Grant': 'grant', 'X-Delete-Token': 'deleteToken', 'X-Transfer-Plan': 'plan' };

/** The scenes that have what the operation asks for, of what scenes have at all. */
function scenesFor({ parameters = [], requestBody }: Operation, scenes: readonly Scene[]): readonly Scene[] {
  const required = [...parameters.filter((one) => one.required).map(({ name }) => name), ...(requestBody?.content['application/json']?.schema.required ?? [])];
  const needed = required.filter((name) => scenes.some((scene) => name in scene));
  return scenes.filter((scene) => needed.every((name) => name in scene));
}

interface Asked {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
  /** Headers of those who may come. */
  readonly callers: readonly Record<string, string>[];
}

/** A request for the operation, with what is bad about it being anywhere. */
function makeRequest(random: RandomInput, { path, method, operation, callers }: Asked): [string, Request] {
  const given = (where: string): Record<string, unknown> => {
    const parameters = operation.parameters?.filter((one) => one.in === where && (one.required || random.isWanted(one.name))) ?? [];
    const good = Object.fromEntries(parameters.map(({ name, schema }) => [name, random.named(name, schema)]));
    return random.isBad(0.15) && (where === 'query' || parameters.length > 0) ? random.spoil(good) : good;
  };
  const inPath = given('path');
  const address = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(asText(inPath[name] ?? 'x').slice(0, 80) || 'x').replace(/^\.+$/, 'x'));
  const query = new URLSearchParams(Object.entries(given('query')).map(([name, value]) => [name, asText(value)] as [string, string]));
  const headers = Object.fromEntries(Object.entries(given('header')).filter(([name]) => /-|^Range$/.test(name)).map(([name, value]) => [name, asText(value).replace(/[^\x20-\x7e]/g, '?')]));
  const sent = { method: method.toUpperCase(), headers: { ...headers, ...random.pick(callers) } };
  return [`${address}${query.size > 0 ? `?${query}` : ''}`, { ...sent, ...makeBody(random, operation) }];
}

function makeBody(random: RandomInput, { requestBody }: Operation): Pick<Request, 'json' | 'body'> {
  if (!requestBody || (!requestBody.required && random.isBad(0.2))) return {};
  const schema = requestBody.content['application/json']?.schema;
  if (!schema || random.isBad(0.02)) return { body: random.pick(['sent', 'some bytes', '', 'x'.repeat(100)]) };
  if (random.isBad(0.03)) return { json: random.hostile() };
  const good = random.value(schema) as Record<string, unknown>;
  return { json: random.isBad(0.4) ? random.spoil(good) : good };
}

function asText(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed();
}

/** Most come as those who may. */
function credentials(): Record<string, string>[] {
  const { owner, named, other, nobody, token, garbage, ended } = cast.headersOf;
  return [owner, owner, owner, owner, named, named, named, other, nobody, nobody, token, garbage, ended];
}

/** What an answer has that the description does not say; nothing when all is well. */
function undescribed({ responses }: Operation, answer: Answer, isHead: boolean): string | undefined {
  const response = responses[answer.status];
  if (answer.status >= 500 || !response) return `status ${answer.status}`;
  const type = answer.headers.get('content-type')?.split(';')[0] ?? '';
  if (isHead) return undefined;
  const content = response.content?.[type];
  if (!content && response.content && !('application/octet-stream' in response.content)) return `type ${type}`;
  // An error of JSON-RPC is what its schema says; everything else that is refused is a problem.
  const isProblem = answer.status >= 400 && type !== 'application/json';
  if (isProblem && !response['x-error-codes']?.includes(answer.json?.code as string)) return `code ${answer.json?.code}`;
  const schema = isProblem ? description.components.schemas.Problem : content?.schema;
  if (!schema || !/[/+]json$/.test(type)) return undefined;
  const parsed = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).safeParse(answer.json);
  return parsed.success ? undefined : `body: ${parsed.error.message}`;
}

describe('every answer is one that the description names', () => {
  test(`${rounds} requests to each operation, made from seed ${seed}`, { timeout: 240_000 }, async () => {
    const wrong = new Map<string, string>();
    const all: string[] = [];
    const succeeded = new Set<string>();
    const random = randomInput(seed, meaningful);
    for (const [path, operations] of Object.entries(description.paths)) {
      const scenes = await makeScenes(path);
      for (const method of methods.filter((one) => one in operations)) {
        const operation = operations[method]!;
        const operationName = `${method.toUpperCase()} ${path}`;
        all.push(operationName);
        // The sessions that others still need do not come here.
        const callers = endsSessions.test(operationName) ? [await cast.standIn('owner'), await cast.standIn('other'), cast.headersOf.named] : credentials();
        for (let round = 0; round < rounds; round += 1) {
          random.enter(random.pick(scenesFor(operation, scenes)), round < rounds / 4);
          const [address, request] = makeRequest(random, { path, method, operation, callers });
          const answer = await call(address, request);
          if (answer.status < 400) succeeded.add(operationName);
          const what = undescribed(operation, answer, method === 'head');
          if (what) wrong.set(`${operationName}: ${what}`, `${address} ${JSON.stringify(request).slice(0, 2_000)} -> ${answer.text.slice(0, 500)}`);
        }
      }
    }
    expect(Object.fromEntries(wrong)).toEqual({});
    // What is refused always shows little: the good inputs have to come through.
    expect(all.filter((name) => !succeeded.has(name))).toEqual(refusedAlways);
  });
});
