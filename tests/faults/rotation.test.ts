/** AEX_SECRET is replaced as docs/operating.md says: while both keys are there nothing is refused; without the old one, what it signed is, and nothing else. */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt, type Agent, type Answer, type Exchange } from '../support/exchange.ts';
import { startFaultStack, type FaultStart } from '../support/fault-stack.ts';
import { multipartLane } from '../support/multipart-lane.ts';
import { makePipe, sendAll } from '../support/pipes.ts';
import { singleLane } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';
import { tusLane } from '../support/tus-lane.ts';

const [oldKey, newKey] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')];

/** What each service is set to while these keys hold, newest first. */
function under(...keys: string[]) {
  const secret = { AEX_SECRET: keys.join(',') };
  return { policy: secret, storage: secret, audit: secret, gateway: { LEGACY_SURFACES: 'upload,tus' } };
}

let fault: FaultStart;
let exchange: Exchange;
let session: string;
let agent: Agent;
let kinds: readonly Kind[];
beforeAll(async () => {
  fault = await startFaultStack(under(oldKey));
  exchange = exchangeAt(fault.stack.baseUrl, fault.stack.owner);
  session = await exchange.signIn();
  agent = await exchange.makeAgent(session);
  kinds = [...tokens(exchange), ...unfinished(exchange)];
});
afterAll(() => fault.end());

/** Answers what comes of using a thing that was made before. */
type Use = () => Promise<Answer>;

interface Kind {
  readonly name: string;
  make(): Promise<Use>;
  /** What its use answers once the key that it was made with is gone. Absent for what goes on, since it holds nothing that is signed. */
  readonly refused?: readonly [status: number, code: string];
}

const names = [
  'a delete token', 'a grant', 'an access token', 'a plan', 'a cursor of the audit record', 'a cursor of shares', 'a passcode', 'a first answer',
  'a multipart upload under a plan', 'a TUS upload', 'a pipe that nobody has written to',
];
const unsigned = 'a TUS upload';
const kindOf = (name: string): Kind => kinds.find((kind) => kind.name === name)!;

/** What is proved by a signature alone. */
function tokens({ call, must, upload, grant, plan }: Exchange): Kind[] {
  const cursor = (path: string) => async (): Promise<Use> => {
    for (let count = 0; count < 2; count += 1) await upload('listed', {}, session);
    await exchange.events(session, {}, 2);
    const { nextCursor } = (await must(`${path}?limit=1`, { bearer: session })).json as { nextCursor: string };
    return () => call(`${path}?limit=1&cursor=${encodeURIComponent(nextCursor)}`, { bearer: session });
  };
  return [
    {
      name: 'a delete token', refused: [403, 'invalid_delete_token'],
      async make() {
        const { id, deleteToken } = await upload('to be deleted');
        return () => call(`/api/dl/${id}`, { method: 'DELETE', headers: { 'X-Delete-Token': deleteToken } });
      },
    },
    {
      name: 'a grant', refused: [403, 'invalid_grant'],
      async make() {
        const { id, shareId } = await upload('granted', { allowedAgentIds: [agent.agentId] }, session);
        const headers = { 'X-Access-Grant': await grant(shareId, agent.key) };
        return () => call(`/api/dl/${id}`, { headers });
      },
    },
    {
      name: 'an access token', refused: [401, 'invalid_agent_credential'],
      async make() {
        const { shareId } = await upload('for named agents', { allowedAgentIds: [agent.agentId] }, session);
        const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: agent.key })).json as { accessToken: string };
        return () => call(`/api/share/${shareId}`, { bearer: accessToken });
      },
    },
    {
      name: 'a plan', refused: [403, 'plan_mismatch'],
      async make() {
        const planned = await plan({ filename: 'a', size: 7, lane: 'single' });
        return () => singleLane(exchange)(planned, Buffer.from('planned'));
      },
    },
    { name: 'a cursor of the audit record', refused: [400, 'invalid_cursor'], make: cursor('/api/audit') },
    { name: 'a cursor of shares', refused: [400, 'invalid_cursor'], make: cursor('/api/shares') },
    {
      name: 'a passcode', refused: [403, 'invalid_passcode'],
      async make() {
        const { downloadUrl } = await upload('behind a passcode', { passcode: 'a good passcode' }, session);
        return () => call(downloadUrl, { headers: { 'X-Share-Passcode': 'a good passcode' } });
      },
    },
    {
      name: 'a first answer', refused: [422, 'idempotency_key_reused'],
      async make() {
        const again = { bearer: session, headers: { 'Idempotency-Key': randomUUID() }, json: { agentId: `agent-${randomUUID()}` } };
        const { json } = await must('/api/agent/keys', again);
        return async () => {
          const second = await call('/api/agent/keys', again);
          if (second.status < 400) expect(second.json).toEqual(json);
          return second;
        };
      },
    },
  ];
}

/** What is under way, and goes on with the credential that it was begun with. */
function unfinished(to: Exchange): Kind[] {
  const [parts, tus] = [multipartLane(to), tusLane(to)];
  const halves = [randomBytes(65_536), randomBytes(1_000)] as const;
  return [
    {
      name: 'a multipart upload under a plan', refused: [403, 'plan_mismatch'],
      async make() {
        const { plan } = await to.plan({ filename: 'a', size: 66_536, lane: 'multipart', partSize: 65_536 });
        const { uploadId } = await parts.begin(66_536, { filename: 'a' }, { plan });
        await parts.part(uploadId, 1, halves[0], { plan });
        return async () => {
          const second = await parts.part(uploadId, 2, halves[1], { plan });
          return second.status < 400 ? parts.complete(uploadId, {}, { plan }) : second;
        };
      },
    },
    {
      name: 'a TUS upload',
      async make() {
        const address = await tus.begin(66_536);
        await tus.patch(address, 0, halves[0]);
        return () => tus.patch(address, 65_536, halves[1]);
      },
    },
    {
      name: 'a pipe that nobody has written to', refused: [403, 'invalid_delete_token'],
      async make() {
        const pipe = await makePipe(to, { filename: 'a' });
        return () => sendAll(to, pipe, 'what was piped');
      },
    },
  ];
}

async function makeAll(): Promise<Map<string, Use>> {
  const made = new Map<string, Use>();
  for (const { name, make } of kinds) made.set(name, await make());
  return made;
}

const kidOf = (plan: string) => (JSON.parse(Buffer.from(plan.split('.')[0]!, 'base64url').toString()) as { kid: string }).kid;
const shownKids = async () => ((await exchange.must('/.well-known/jwks.json')).json.keys as { kid: string }[]).map(({ kid }) => kid);
const signingKid = async () => kidOf((await exchange.plan({ filename: 'a', size: 1 })).plan);

let byOld: Map<string, Use>;
let keptByOld: Map<string, Use>;
let byOldWhileBoth: Map<string, Use>;
let byNew: Map<string, Use>;
let [oldKid, newKid] = ['', ''];

describe('the new key is told to all, and signs nothing yet', () => {
  beforeAll(async () => {
    [byOld, keptByOld] = [await makeAll(), await makeAll()];
    [oldKid] = await shownKids() as [string];
    await fault.restart(under(oldKey, newKey));
    byOldWhileBoth = await makeAll();
  });

  test('the key set shows both, and plans are signed by the old one', async () => {
    const shown = await shownKids();
    newKid = shown[1]!;
    expect(shown).toEqual([oldKid, expect.any(String)]);
    expect(newKid).not.toBe(oldKid);
    expect(await signingKid()).toBe(oldKid);
  });
});

describe('the new key comes first', () => {
  beforeAll(async () => {
    await fault.restart(under(newKey, oldKey));
    byNew = await makeAll();
  });

  test('plans are signed by it, and the key set shows both', async () => {
    expect(await shownKids()).toEqual([newKid, oldKid]);
    expect(await signingKid()).toBe(newKid);
  });

  test.each(names)('%s of the old key works', async (name) => {
    for (const made of [byOld, byOldWhileBoth]) expect(await made.get(name)!()).toMatchObject({ status: expect.toBeOneOf([200, 201, 204]) });
  });
});

describe('the old key is dropped', () => {
  beforeAll(async () => { await fault.restart(under(newKey)); });

  test('every kind is tried', () => expect(kinds.map(({ name }) => name)).toEqual(names));
  test('the key set shows the new one', async () => expect(await shownKids()).toEqual([newKid]));

  test.each(names.filter((name) => name !== unsigned))('%s of the old key is refused', async (name) => {
    expectRefusal(await keptByOld.get(name)!(), ...kindOf(name).refused!);
  });

  test('a TUS upload goes on: its address is a secret that nobody signed', async () => {
    expect((await keptByOld.get(unsigned)!()).status).toBe(204);
  });

  test.each(names)('%s of the new key works', async (name) => {
    expect(await byNew.get(name)!()).toMatchObject({ status: expect.toBeOneOf([200, 201, 204]) });
  });
});
