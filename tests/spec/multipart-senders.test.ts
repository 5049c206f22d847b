/** Who may go on with a multipart upload: its sender, or whoever holds its plan (interface chapter: Native multipart lane). */
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { multipartLane, smallestPart, type Speaker } from '../support/multipart-lane.ts';
import { forge, singleLane, sha256Of, type Planned } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { must, plan } = exchange;
const lane = multipartLane(exchange);
const abc = Buffer.from('abc');
let session: string;
let sender: Agent;
let stranger: Agent;

beforeAll(async () => {
  session = await exchange.signIn();
  sender = await exchange.makeAgent(session);
  stranger = await exchange.makeAgent(session);
});

async function expectEveryCall(uploadId: string, speaker: Speaker, status: number, code: string): Promise<void> {
  for (const answer of [
    await lane.status(uploadId, speaker), await lane.part(uploadId, 1, abc, speaker), await lane.complete(uploadId, {}, speaker), await lane.abort(uploadId, speaker),
  ]) expectRefusal(answer, status, code);
}

describe('an upload without a plan', () => {
  test("an agent's upload goes on with its key only", async () => {
    const { uploadId } = await lane.begin(3, {}, { bearer: sender.key });
    await expectEveryCall(uploadId, {}, 401, 'agent_auth_required');
    await expectEveryCall(uploadId, { bearer: stranger.key }, 403, 'forbidden');
    await expectEveryCall(uploadId, { bearer: session }, 403, 'forbidden');
    await expectEveryCall(uploadId, { bearer: 'garbage' }, 401, 'invalid_agent_credential');
    await lane.part(uploadId, 1, abc, { bearer: sender.key });
    expect((await lane.complete(uploadId, {}, { bearer: sender.key })).status).toBe(201);
    await expectEveryCall(uploadId, { bearer: stranger.key }, 403, 'forbidden');
  });

  test("an owner's upload goes on with a session only", async () => {
    const { uploadId } = await lane.begin(3, {}, { bearer: session });
    await expectEveryCall(uploadId, {}, 401, 'owner_auth_required');
    await expectEveryCall(uploadId, { bearer: sender.key }, 403, 'forbidden');
    await expectEveryCall(uploadId, { bearer: `aos_nobody.${'x'.repeat(43)}` }, 401, 'invalid_owner_credential');
    expect((await lane.abort(uploadId, { bearer: await exchange.signIn() })).status).toBe(200);
  });

  test('a second key of the same agent will do', async () => {
    const { uploadId } = await lane.begin(3, {}, { bearer: sender.key });
    const other = await exchange.makeAgent(session, sender.agentId);
    expect((await lane.part(uploadId, 1, abc, { bearer: other.key })).status).toBe(200);
  });

  test('a plan that has nothing to do with it is a mistake', async () => {
    const { uploadId } = await lane.begin(3);
    const other = await plan({ filename: 'a', size: 3, lane: 'multipart' });
    await expectEveryCall(uploadId, { plan: other.plan }, 403, 'plan_mismatch');
  });
});

describe('POST /api/upload/multipart/init, planned', () => {
  const fields = { filename: 'a.bin', mimeType: 'text/plain', size: 2 * smallestPart, lane: 'multipart', partSize: smallestPart, ttl: 600, maxUses: 5, allowedAgentIds: ['a1', 'a2'], policyMetadata: { step: 'one' } };
  const init = (planned: Planned, more: object = {}) => lane.init({ filename: 'a.bin', size: 2 * smallestPart, ...more }, { plan: planned.plan });

  test('later calls need the same plan', async () => {
    const [planned, other] = [await plan({ filename: 'parts.bin', size: 3, lane: 'multipart' }, sender.key), await plan({ filename: 'parts.bin', size: 3, lane: 'multipart' }, sender.key)];
    const { uploadId } = await lane.begin(3, {}, { plan: planned.plan });
    await expectEveryCall(uploadId, {}, 401, 'plan_required');
    await expectEveryCall(uploadId, { bearer: sender.key }, 401, 'plan_required');
    await expectEveryCall(uploadId, { plan: other.plan }, 403, 'plan_mismatch');
    await expectEveryCall(uploadId, { plan: forge(planned, () => undefined).slice(0, -4) }, 403, 'plan_mismatch');
    await lane.part(uploadId, 1, abc, { plan: planned.plan });
    expect((await lane.complete(uploadId, {}, { plan: planned.plan })).status).toBe(201);
  });

  test.each<[string, object]>([
    ['size', { size: 2 * smallestPart + 1 }], ['ttl', { ttl: 601 }], ['maxUses', { maxUses: 6 }], ['allowedAgentIds', { allowedAgentIds: ['a1', 'a3'] }],
    ['allowedAgentIds', { allowedAgentIds: [] }], ['authMode', { authMode: 'open', allowedAgentIds: [] }],
  ])('a wider %s is refused by name', async (field, more) => {
    const planned = await plan(fields);
    expectRefusal(await init(planned, more), 403, 'plan_widened', field);
    expect((await init(planned)).status).toBe(201);
  });

  test.each<[string, object]>([
    ['filename', { filename: 'b.bin' }], ['mimeType', { mimeType: 'text/html' }], ['partSize', { partSize: 2 * smallestPart }], ['policyMetadata', { policyMetadata: { step: 'two' } }],
    ['policyMetadata', { policyMetadata: { step: 'one', more: 'x' } }],
  ])('another %s is not what was planned', async (field, more) => {
    expectRefusal(await init(await plan(fields), more), 403, 'plan_mismatch', field);
  });

  test('another digest than the planned one is refused', async () => {
    const planned = await plan({ ...fields, sha256: sha256Of(abc) });
    expectRefusal(await init(planned, { sha256: sha256Of(Buffer.from('xyz')) }), 400, 'digest_mismatch');
  });

  test('what is narrower passes and holds for the share', async () => {
    const reader = await exchange.makeAgent(session);
    const planned = await plan({ filename: 'a.bin', size: 10, lane: 'multipart', maxUses: 5, allowedAgentIds: ['a1', reader.agentId] });
    const speaker = { plan: planned.plan };
    const { json } = await lane.init({ filename: 'a.bin', size: 3, ttl: 60, maxUses: 1, allowedAgentIds: [reader.agentId] }, speaker);
    await lane.part(json.uploadId, 1, abc, speaker);
    const stored = (await lane.complete(json.uploadId, {}, speaker)).json;
    expect((await must(`/api/share/${stored.shareId}`, { bearer: reader.key })).json)
      .toMatchObject({ size: 3, policy: { mode: 'agent', maxUses: 1, allowedAgentIds: [reader.agentId] } });
    expect(Date.parse(stored.expiresAt)).toBeLessThanOrEqual(Date.now() + 61_000);
  });

  test('a plan of the single lane passes when it lists multipart, and a stream has no such fallback', async () => {
    expect((await lane.init({ filename: 'a', size: 3 }, { plan: (await plan({ filename: 'a', size: 3 })).plan })).status).toBe(201);
    expectRefusal(await lane.init({ filename: 'a', size: 3 }, { plan: (await plan({ filename: 'a' })).plan }), 403, 'plan_mismatch');
  });

  test('a plan that is not one of ours is refused', async () => {
    const planned = await plan(fields);
    for (const signed of ['garbage', forge(planned, (claims) => { claims.release.ttl = 604_800; })]) {
      expectRefusal(await lane.init({ filename: 'a.bin', size: 1 }, { plan: signed }), 403, 'plan_mismatch');
    }
  });

  test('the plan comes in its header, not in the body', async () => {
    const { plan: signed } = await plan(fields);
    expectRefusal(await lane.init({ filename: 'a.bin', size: 1, plan: signed }), 400, 'invalid_request', 'plan');
  });
});

describe('a plan completes one transfer', () => {
  const planned = () => plan({ filename: 'parts.bin', size: 3, lane: 'multipart' });

  test('the same init again is the same upload, another one is refused', async () => {
    const speaker = { plan: (await planned()).plan };
    const first = await lane.init({ filename: 'parts.bin', size: 3 }, speaker);
    const again = await lane.init({ filename: 'parts.bin', size: 3 }, speaker);
    expect(again.json).toEqual(first.json);
    expectRefusal(await lane.init({ filename: 'parts.bin', size: 2 }, speaker), 409, 'plan_already_used');
  });

  test('ten inits at once are one upload', async () => {
    const speaker = { plan: (await planned()).plan };
    const answers = await Promise.all(Array.from({ length: 10 }, () => lane.init({ filename: 'parts.bin', size: 3 }, speaker)));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(new Set([`201 ${answers[0]!.text}`]));
  });

  test('an aborted upload has used its plan', async () => {
    const speaker = { plan: (await planned()).plan };
    const { uploadId } = await lane.begin(3, {}, speaker);
    await lane.abort(uploadId, speaker);
    expectRefusal(await lane.init({ filename: 'parts.bin', size: 3 }, speaker), 409, 'plan_already_used');
  });

  test('what one lane began the other does not take over', async () => {
    const put = singleLane(exchange);
    const [first, second] = [await plan({ filename: 'parts.bin', size: 3, lane: 'single' }), await plan({ filename: 'parts.bin', size: 3, lane: 'single' })];
    expect((await put(first, abc)).status).toBe(201);
    expectRefusal(await lane.init({ filename: 'parts.bin', size: 3 }, { plan: first.plan }), 409, 'plan_already_used');

    await lane.begin(3, {}, { plan: second.plan });
    expectRefusal(await put(second, abc), 409, 'plan_already_used');
  });
});
