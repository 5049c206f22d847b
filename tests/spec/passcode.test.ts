/** Shares with a passcode: what a fetch needs, what wrong ones cost, and that it is found nowhere (interface chapter: Policy). */
import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { sharedExchange, type Agent, type Answer, type Uploaded } from '../support/exchange.ts';
import { headOf } from '../support/head.ts';
import { multipartLane } from '../support/multipart-lane.ts';
import { startOwnStack } from '../support/own-stack.ts';
import { expectRefusal } from '../support/refusals.ts';
import { codeOf, runInShell, whyNoCurl } from '../support/shell.ts';

const exchange = sharedExchange();
const { baseUrl, call, must, signIn, makeAgent, plan, upload, grant, events } = exchange;
const { init, begin, part, complete } = multipartLane(exchange);

const passcode = 'open sesame';
let session: string;
let agent: Agent;
beforeAll(async () => {
  session = await signIn();
  agent = await makeAgent(session);
});

const forAgent = () => ({ authMode: 'agent', allowedAgentIds: [agent.agentId] });
const fetchWith = ({ downloadUrl }: Pick<Uploaded, 'downloadUrl'>, given?: string, headers: Record<string, string> = {}) =>
  call(downloadUrl, { headers: { ...(given !== undefined && { 'x-share-passcode': given }), ...headers } });

async function usesOf({ id }: Uploaded): Promise<number> {
  return (await must(`/api/shares?targetId=${id}`, { bearer: session })).json.shares[0].uses;
}

/** An upload of one small part. */
async function uploadInParts(fields: Record<string, unknown>, signedPlan?: string): Promise<Uploaded> {
  const speaker = { ...(signedPlan ? { plan: signedPlan } : { bearer: session }) };
  const { uploadId } = await begin(5, fields, speaker);
  await part(uploadId, 1, Buffer.from('parts'), speaker);
  return (await complete(uploadId, {}, speaker)).json as Uploaded;
}

describe('GET /api/dl/{id} of a share with a passcode', () => {
  test('needs X-Share-Passcode: without it passcode_required, with a wrong one invalid_passcode, and neither spends anything', async () => {
    const made = await upload('locked', { passcode, maxUses: 1 }, session);
    expectRefusal(await fetchWith(made), 401, 'passcode_required');
    expectRefusal(await fetchWith(made, ''), 401, 'passcode_required');
    for (const wrong of ['open sesam', 'open sesame!', 'Open sesame', 'x'.repeat(20_000)]) expectRefusal(await fetchWith(made, wrong), 403, 'invalid_passcode');
    expect(await usesOf(made)).toBe(0);
    const right = await fetchWith(made, passcode);
    expect([right.status, right.text, right.headers.get('x-remaining-uses')]).toEqual([200, 'locked', '0']);
    expectRefusal(await fetchWith(made, passcode), 410, 'share_use_limit_exceeded');
  });

  test('has nothing in an address: a passcode in the query is not looked at', async () => {
    const made = await upload('query', { passcode }, session);
    for (const name of ['passcode', 'X-Share-Passcode']) {
      expect((await call(`${made.downloadUrl}&${name}=${encodeURIComponent(passcode)}`)).status).toBeGreaterThanOrEqual(400);
    }
  });

  test('a range and a conditional request need it too; HEAD needs nothing', async () => {
    const made = await upload('0123456789', { passcode, maxUses: 2 }, session);
    expectRefusal(await fetchWith(made, undefined, { range: 'bytes=0-3' }), 401, 'passcode_required');
    expectRefusal(await fetchWith(made, 'wrong one', { range: 'bytes=0-3' }), 403, 'invalid_passcode');
    const ranged = await fetchWith(made, passcode, { range: 'bytes=0-3' });
    expect([ranged.status, ranged.text]).toEqual([206, '0123']);
    expect((await headOf(exchange, made.downloadUrl)).status).toBe(200);
    expect(await usesOf(made)).toBe(1);
  });

  test('an agent share needs the grant and the passcode, and a wrong one leaves the grant unused', async () => {
    const made = await upload('both', { ...forAgent(), passcode }, session);
    expectRefusal(await fetchWith(made, passcode), 401, 'grant_required');
    const token = { 'x-access-grant': await grant(made.shareId, agent.key) };
    expectRefusal(await fetchWith(made, undefined, token), 401, 'passcode_required');
    expectRefusal(await fetchWith(made, 'wrong one', token), 403, 'invalid_passcode');
    expectRefusal(await fetchWith(made, passcode, { 'x-access-grant': `${token['x-access-grant']}x` }), 403, 'invalid_grant');
    expect((await fetchWith(made, passcode, token)).text).toBe('both');
    expectRefusal(await fetchWith(made, passcode, token), 409, 'grant_already_used');
  });

  test('40 racers with the right passcode spend exactly the cap, and none of them counts as wrong', async () => {
    const made = await upload('raced', { passcode, maxUses: 3 }, session);
    const answers = await Promise.all(Array.from({ length: 40 }, () => fetchWith(made, passcode)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 410, 'share_use_limit_exceeded');
  });

  test('a revoked share is not found, whatever the passcode', async () => {
    const made = await upload('over', { passcode }, session);
    await must(`/api/share/${made.shareId}`, { method: 'DELETE', bearer: session });
    for (const given of [undefined, 'wrong one', passcode]) expectRefusal(await fetchWith(made, given), 404, 'share_not_found_or_expired');
  });

  test('a passcode on a share that has none is passed over', async () => {
    expect((await fetchWith(await upload('plain'), 'any at all')).text).toBe('plain');
  });

  test('letters beyond ASCII work as UTF-8 and as Latin-1', async () => {
    const umlaut = 'schlüssel';
    const made = await upload('umlaut', { passcode: umlaut }, session);
    expect((await fetchWith(made, umlaut)).status).toBe(200);
    expect((await fetchWith(made, Buffer.from(umlaut, 'utf8').toString('latin1'))).status).toBe(200);
    expectRefusal(await fetchWith(made, 'schlussel'), 403, 'invalid_passcode');
  });
});

describe('wrong passcodes', () => {
  test('20 at once: 10 are looked at, the others and then also the right one answer rate_limited; other shares go on', async () => {
    const [made, other] = [await upload('guarded', { passcode }, session), await upload('other', { passcode }, session)];
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => fetchWith(made, `guess ${n}`)));
    expect(answers.filter(({ json }) => json.code === 'invalid_passcode')).toHaveLength(10);
    const limited = answers.filter(({ json }) => json.code === 'rate_limited');
    expect(limited).toHaveLength(10);
    for (const answer of [...limited, await fetchWith(made, passcode)]) {
      expectRefusal(answer, 429, 'rate_limited');
      const wait = Number(answer.headers.get('retry-after'));
      expect([wait > 800, wait <= 900]).toEqual([true, true]);
    }
    // What is no try is still told what it lacks.
    expectRefusal(await fetchWith(made), 401, 'passcode_required');
    expect((await fetchWith(other, passcode)).text).toBe('other');
    const told = await events(session, { shareId: made.shareId, eventType: 'share.denied' }, 22);
    expect(new Set(told.map(({ code }) => code))).toEqual(new Set(['invalid_passcode', 'rate_limited', 'passcode_required']));
  });

  test('count for a time: after it the right one is let through again', async () => {
    const own = await startOwnStack({ policy: { PASSCODE_TRIES: '2', PASSCODE_WINDOW_SECONDS: '4' } });
    try {
      const made = await own.exchange.upload('waited', { passcode });
      const fetched = (given: string) => own.exchange.call(made.downloadUrl, { headers: { 'x-share-passcode': given } });
      expectRefusal(await fetched('wrong one'), 403, 'invalid_passcode');
      expect((await fetched(passcode)).status).toBe(200);
      expectRefusal(await fetched('wrong two'), 403, 'invalid_passcode');
      const limited = await fetched(passcode);
      expectRefusal(limited, 429, 'rate_limited');
      await new Promise((resolve) => setTimeout(resolve, Number(limited.headers.get('retry-after')) * 1_000 + 200));
      expect((await fetched(passcode)).text).toBe('waited');
    } finally {
      await own.remove();
    }
  });
});

describe('creating a share with a passcode', () => {
  test.each(['public', 'public-once', 'agent-only', 'expiring-handoff', 'passcode-ready'])('works with template %s', async (policyTemplateId) => {
    const isAgent = ['agent-only', 'expiring-handoff'].includes(policyTemplateId);
    const made = await upload('any', { policyTemplateId, passcode, ...(isAgent && { allowedAgentIds: [agent.agentId] }) }, session);
    const headers: Record<string, string> = isAgent ? { 'x-access-grant': await grant(made.shareId, agent.key) } : {};
    expectRefusal(await fetchWith(made, undefined, headers), 401, 'passcode_required');
    expect((await fetchWith(made, passcode, headers)).text).toBe('any');
  });

  test('passcode-ready without a passcode is fetched without one', async () => {
    expect((await fetchWith(await upload('ready', { policyTemplateId: 'passcode-ready' }))).text).toBe('ready');
  });

  test('POST /api/upload/multipart/init takes one too', async () => {
    const made = await uploadInParts({ passcode });
    expectRefusal(await fetchWith(made), 401, 'passcode_required');
    expect((await fetchWith(made, passcode)).text).toBe('parts');
  });

  test('under a plan, init adds one or says the planned one again; another is plan_mismatch', async () => {
    const file = { filename: 'parts.bin', size: 5, lane: 'multipart' };
    const locked = (await plan({ ...file, passcode }, session)).plan;
    expectRefusal(await init({ filename: 'parts.bin', size: 5, passcode: 'another one' }, { plan: locked }), 403, 'plan_mismatch', 'passcode');
    const free = (await plan(file, session)).plan;
    const silent = (await plan({ ...file, passcode }, session)).plan;
    for (const [signed, fields] of [[locked, { passcode }], [free, { passcode }], [silent, {}]] as const) {
      const made = await uploadInParts(fields, signed);
      expectRefusal(await fetchWith(made, 'another one'), 403, 'invalid_passcode');
      expect((await fetchWith(made, passcode)).text).toBe('parts');
    }
  });

  test.each([
    ['three characters', 'abc'], ['129 characters', 'x'.repeat(129)], ['a space in front', ' open sesame'], ['a space at the end', 'open sesame '], ['a line end', 'open\nsesame'],
    ['U+0000', 'open\u0000sesame'], ['a lone surrogate', 'open\ud800'], ['a number', 12_345], ['null', null], ['nothing', ''],
  ])('a passcode of %s answers invalid_request', async (_title, bad) => {
    expectRefusal(await call('/api/transfer-plan', { json: { filename: 'a', passcode: bad } }), 400, 'invalid_request', 'passcode');
    expectRefusal(await init({ filename: 'a', size: 1, passcode: bad }), 400, 'invalid_request', 'passcode');
  });

  test.each([['4 characters', '1234'], ['128 characters', 'x'.repeat(128)], ['4 emoji', '🔑🔒🔓🗝'], ['every sign of ASCII', '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~']])('a passcode of %s is good', async (_title, good) => {
    const made = await upload('good', { passcode: good });
    expect((await fetchWith(made, Buffer.from(good, 'utf8').toString('latin1'))).text).toBe('good');
  });

  test('with an Idempotency-Key the same passcode replays the first answer, another is another request', async () => {
    for (const [path, file] of [['/api/transfer-plan', { filename: 'a' }], ['/api/upload/multipart/init', { filename: 'a', size: 5 }]] as const) {
      const headers = { 'idempotency-key': randomUUID() };
      const first = await must(path, { json: { ...file, passcode }, headers });
      expect((await must(path, { json: { ...file, passcode }, headers })).json).toEqual(first.json);
      for (const other of [{ ...file, passcode: 'another one' }, file]) expectRefusal(await call(path, { json: other, headers }), 422, 'idempotency_key_reused');
    }
  });
});

describe('what shows of a passcode', () => {
  test('that one is needed, where it is, and nothing where none is', async () => {
    const planned = await plan({ filename: 'a', passcode }, session);
    expect(planned.release).toMatchObject({ passcodeRequired: true });
    const [locked, plain] = [await upload('x', { passcode }, session), await upload('x', {}, session)];
    expect((await must(`/api/share/${locked.shareId}`)).json.policy.passcodeRequired).toBe(true);
    expect((await must(`/api/share/${plain.shareId}`)).json.policy).not.toHaveProperty('passcodeRequired');
    expect((await must(`/api/shares?targetId=${locked.id}`, { bearer: session })).json.shares[0].policy.passcodeRequired).toBe(true);
    expect((await plan({ filename: 'a' }, session)).release).not.toHaveProperty('passcodeRequired');
  });

  test('the page of such a share may ask this exchange by script, other pages may not', async () => {
    const [locked, plain] = [await upload('x', { passcode, filename: 'note.txt' }), await upload('x')];
    const page = await must(locked.shareUrl);
    expect(page.headers.get('content-security-policy')).toContain("connect-src 'self'");
    expect(page.text).toMatch(/<form class="passcode"[^>]* hidden>/);
    expect(page.text).not.toContain('<a class="button"');
    expect((await must(plain.shareUrl)).headers.get('content-security-policy')).not.toContain('connect-src');
  });

  test.skipIf(whyNoCurl() !== undefined)('the command of the page fetches the file', async () => {
    const made = await upload('by curl', { passcode, filename: 'note.txt' });
    const command = codeOf((await must(made.shareUrl)).text, 'curl');
    expect(command).toContain(baseUrl);
    expect(await runInShell(command, { PASSCODE: passcode })).toMatchObject({ code: 0, files: { 'note.txt': 'by curl' } });
    expect(await runInShell(command, { PASSCODE: 'wrong one' })).toMatchObject({ files: {} });
  });

  test('itself nowhere: in no answer, no event, no plan, no log and no file that any part of the system keeps', async () => {
    const secret = `secret-${randomUUID()}`;
    const answers: Answer[] = [];
    const noted = async (answer: Promise<Answer>) => { answers.push(await answer); return answers.at(-1)!; };
    const headers = { 'idempotency-key': randomUUID() };
    const planned = (await noted(must('/api/transfer-plan', { json: { filename: 'a', size: 6, passcode: secret }, headers, bearer: session }))).json;
    await noted(call('/api/transfer-plan', { json: { filename: 'a', size: 7, passcode: secret }, headers, bearer: session }));
    await noted(call('/api/transfer-plan', { json: { filename: 'a', size: 6, passcode: secret, unknown: 1 } }));
    const made = (await noted(must(planned.upload.url, { method: 'PUT', headers: planned.upload.headers, body: 'stored' }))).json as Uploaded;
    await noted(init({ filename: 'a', size: 5, passcode: secret }, { bearer: session, headers: { 'idempotency-key': randomUUID() } }));
    for (const given of [undefined, `${secret}x`, secret]) await noted(fetchWith(made, given));
    for (const path of [`/api/share/${made.shareId}`, `/api/shares?targetId=${made.id}`, made.shareUrl]) await noted(call(path, { bearer: path.startsWith('/api/shares') ? session : undefined }));
    await events(session, { shareId: made.shareId, eventType: 'share.denied' }, 2);
    await noted(call(`/api/audit?shareId=${made.shareId}`, { bearer: session }));
    const claims = Buffer.from(planned.plan.split('.')[1], 'base64url').toString('utf8');
    for (const text of [claims, ...answers.flatMap(({ text, headers: sent }) => [text, JSON.stringify([...sent])])]) expect(text).not.toContain(secret);
    expect(claims).toContain('"passcodeHash":"argon2id$');
    for (const { text } of answers) expect(text).not.toContain('argon2id');
    expect(await filesWith(made.shareId)).not.toEqual([]);
    expect(await filesWith(secret)).toEqual([]);
  });
});

/** The files of the whole stack that hold a text: the database with its log of changes, the stream, the services' logs. */
async function filesWith(text: string): Promise<string[]> {
  const dataDir = inject('dataDir');
  const entries = await readdir(dataDir, { recursive: true, withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const bytes = await readFile(path).catch(() => Buffer.alloc(0));
    if (bytes.includes(text)) found.push(path);
  }
  return found;
}
