/** Secrets stay secret: whatever is issued, and whatever is done with it, is found again nowhere but in the answers that show it. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt, type Answer, type Request } from '../support/exchange.ts';
import { sleep, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { allowPublic, startSourceServer, type SourceServer } from '../support/source-server.ts';
import { commandLines, dumpDatabase, filesBelow, findSecrets, type Secret } from '../support/secrets.ts';

let stack: FaultStack;
let end: () => Promise<void>;
let secrets: Secret[];
let source: SourceServer;
const answers: { readonly place: string; readonly told: string }[] = [];
beforeAll(async () => {
  // The more is logged, the more could be found.
  ({ stack, end } = await startFaultStack({ all: { LOG_LEVEL: 'trace', LEGACY_SURFACES: 'upload,tus' }, importer: allowPublic }));
  source = await startSourceServer();
  secrets = await driveEverything();
  // The audit record and the logs come a moment later.
  await sleep(3_000);
  await stack.query('checkpoint');
});
afterAll(async () => {
  source.close();
  await end();
});

type Driver = ReturnType<typeof openDriver>;

/** A client that keeps what it is told, and which of it is secret. */
function openDriver() {
  const { call, owner, baseUrl } = exchangeAt(stack.baseUrl, stack.owner);
  const issued: Secret[] = [];
  const keep = (name: string, value: string, ...allowed: string[]) => {
    issued.push({ name, value, allowed });
    return value;
  };
  /** Sends, and keeps what is told; `place` names the answers that may show a secret. */
  async function send(place: string, path: string, request: Request = {}): Promise<Answer> {
    const answer = await call(path, request);
    answers.push({ place, told: `${answer.text}\n${[...answer.headers].map((pair) => pair.join(': ')).join('\n')}` });
    return answer;
  }
  async function must(place: string, path: string, request?: Request): Promise<any> {
    const answer = await send(place, path, request);
    if (answer.status >= 400) throw new Error(`${place}: ${answer.status} ${answer.text}`);
    return answer.json;
  }
  return { owner, baseUrl, issued, keep, send, must };
}

/** Uses the whole interface, well and badly. Answers every secret that came up. */
async function driveEverything(): Promise<Secret[]> {
  const driver = openDriver();
  const session = await driveOwners(driver);
  const agent = await driveKeys(driver, session);
  const made = await driveTransfers(driver, { session, agent });
  await driveImports(driver, session);
  await driveMcp(driver, agent);
  await driveLegacy(driver, session);
  await readBack(driver, { session, agent, made });
  for (const secret of [...driver.issued]) await misplace(driver, secret, { session, agent, made });
  await driver.must('revoke the key', `/api/agent/keys/${agent.keyId}`, { method: 'DELETE', bearer: session });
  return [...driver.issued, ...(await ofTheStack())];
}

const again = { 'idempotency-key': 'the-same-again' };
/** A key is one request's: its caller has used the other. */
const folderAgain = { 'idempotency-key': 'the-same-folder-again' };

async function driveOwners({ owner, baseUrl, keep, send, must }: Driver): Promise<string> {
  keep('password of the first owner', owner.password, 'local.json');
  const signedIn = await must('sign in', '/api/owner/session', { json: owner });
  const session = keep('session', signedIn.token, 'sign in');
  const ended = keep('session that was ended', (await must('sign in again', '/api/owner/session', { json: owner })).token, 'sign in again');
  await must('sign out', '/api/owner/session', { method: 'DELETE', headers: { cookie: `aex_session=${ended}`, origin: new URL(baseUrl).origin } });
  const account = { email: 'second@example.com', password: keep('password of another owner', 'Quite-a-long-password-of-another') };
  await must('make an owner', '/api/owner/accounts', { bearer: session, json: account });
  await send('make the owner again', '/api/owner/accounts', { bearer: session, json: account });
  await send('sign in with a wrong password', '/api/owner/session', { json: { ...account, password: keep('wrong password', 'A-password-that-is-not-the-right-one') } });
  return session;
}

async function driveKeys({ keep, must }: Driver, session: string) {
  const makeKey = (place: string): Promise<any> => must(place, '/api/agent/keys', { bearer: session, headers: again, json: { agentId: 'receiver' } });
  const { key, keyId } = await makeKey('make a key');
  expect((await makeKey('make a key, replayed')).key).toBe(keep('agent key', key, 'make a key', 'make a key, replayed'));
  const other = await must('make another key', '/api/agent/keys', { bearer: session, json: { agentId: 'receiver' } });
  const revoked = keep('revoked agent key', other.key, 'make another key');
  const token = keep('access token', (await must('authenticate', '/api/agent/auth', { json: { agentKey: key } })).accessToken, 'authenticate');
  keep('access token of a revoked key', (await must('authenticate by the other key', '/api/agent/auth', { method: 'POST', bearer: revoked })).accessToken, 'authenticate by the other key');
  await must('revoke a key', `/api/agent/keys/${other.keyId}`, { method: 'DELETE', bearer: session });
  return { key: key as string, keyId: keyId as string, token };
}

type DrivenAgent = Awaited<ReturnType<typeof driveKeys>>;

async function driveTransfers({ keep, send, must }: Driver, { session, agent: { key } }: { session: string; agent: DrivenAgent }) {
  const passcode = keep('passcode', 'a-passcode-nobody-guesses');
  const wrongPasscode = keep('wrong passcode', 'a-passcode-that-is-not-it');
  async function upload(name: string, fields: object): Promise<any> {
    const json = { filename: 'a.txt', mimeType: 'text/plain', size: 5, lane: 'single', ...fields };
    const headers = { 'idempotency-key': `plan ${name}`.replaceAll(' ', '-') };
    const planned = await must(`plan ${name}`, '/api/transfer-plan', { bearer: session, headers, json });
    await must(`plan ${name}, replayed`, '/api/transfer-plan', { bearer: session, headers, json });
    keep(`plan of ${name}`, planned.plan, `plan ${name}`, `plan ${name}, replayed`);
    const sent = await must(`send ${name}`, planned.upload.url, { method: 'PUT', headers: planned.upload.headers, body: 'bytes' });
    await must(`send ${name}, replayed`, planned.upload.url, { method: 'PUT', headers: planned.upload.headers, body: 'bytes' });
    keep(`delete token of ${name}`, sent.deleteToken, `send ${name}`, `send ${name}, replayed`);
    return sent;
  }
  const forAgent = await upload('an agent share', { authMode: 'agent', allowedAgentIds: ['receiver'] });
  const locked = await upload('a passcode share', { passcode });
  const gone = await upload('a share to be deleted', {});
  const folder = await must('make a folder', '/api/folder', { bearer: session, headers: folderAgain, json: { name: 'folder', passcode } });
  await must('make the folder, replayed', '/api/folder', { bearer: session, headers: folderAgain, json: { name: 'folder', passcode } });
  const ofFolder = { 'x-delete-token': keep('delete token of a folder', folder.deleteToken, 'make a folder', 'make the folder, replayed') };
  const file = await must('declare a file', `/api/folder/${folder.folderId}/files`, { headers: ofFolder, json: { path: 'a/b.txt', size: 0 } });
  await must('complete the file', `/api/folder/${folder.folderId}/upload-complete`, { headers: ofFolder, json: { fileId: file.fileId, uploadId: file.uploadId, operationId: 'complete' } });
  await must('list the folder', `/api/folder/${folder.folderId}`, { headers: ofFolder });
  const init = await must('begin in parts', '/api/upload/multipart/init', { bearer: key, json: { filename: 'parts.bin', size: 5, passcode } });
  await must('send a part', `/api/upload/multipart/part?uploadId=${init.uploadId}&partNumber=1`, { bearer: key, body: 'bytes' });
  const complete = (place: string): Promise<any> => must(place, '/api/upload/multipart/complete', { bearer: key, json: { uploadId: init.uploadId } });
  const inParts = await complete('complete');
  await complete('complete, replayed');
  keep('delete token of parts', inParts.deleteToken, 'complete', 'complete, replayed');

  const ask = (place: string, headers: Record<string, string> = {}): Promise<any> => must(place, '/api/agent/grants', { bearer: key, headers, json: { shareId: forAgent.shareId } });
  const used = keep('used grant', (await ask('a grant', again)).accessToken, 'a grant', 'a grant, replayed');
  await ask('a grant, replayed', again);
  keep('unused grant', (await ask('a grant that is kept')).accessToken, 'a grant that is kept');
  for (const place of ['fetch', 'fetch again']) await send(place, `/api/dl/${forAgent.id}`, { headers: { 'x-access-grant': used } });
  for (const [place, sent] of [['fetch by passcode', passcode], ['fetch by a wrong passcode', wrongPasscode]] as const) await send(place, locked.downloadUrl, { headers: { 'x-share-passcode': sent } });
  await send('delete by a wrong token', `/api/dl/${gone.id}`, { method: 'DELETE', headers: { 'x-delete-token': locked.deleteToken } });
  await must('delete', `/api/dl/${gone.id}`, { method: 'DELETE', headers: { 'x-delete-token': gone.deleteToken } });
  return { forAgent, locked, init };
}

/** A URL is often a secret of its own: in its query, its path, or as what looks like a password. */
async function driveImports({ keep, send, must }: Driver, session: string): Promise<void> {
  const sameImport = { 'idempotency-key': 'the-same-import' };
  const token = keep('token in a URL', 'a-token-that-signs-a-url');
  const passcode = keep('passcode of an import', 'passcode-of-an-import');
  const ask = (place: string, url: string, headers = {}) => [place, '/api/import-url', { bearer: session, headers, json: { url, filename: 'imported.txt', passcode } }] as const;
  for (const place of ['import', 'import, replayed']) {
    const made = await must(...ask(place, source.url(`/text/${token}?token=${token}#${token}`), sameImport));
    keep('delete token of an import', made.deleteToken, 'import', 'import, replayed');
  }
  await send(...ask('import another URL', source.url(`/text?token=${token}-else`), sameImport));
  for (const url of [source.url(`/absent?token=${token}`), `http://10.0.0.1/${token}`, `http://user:${token}@a.test/`, `http://a.test:99999/${token}`, `ftp://a.test/${token}`, source.url(`/to/0/${encodeURIComponent(`http://10.0.0.1/?${token}`)}`)]) await send(...ask('import in vain', url));
}

const toolCall = (name: string, args: object) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });

async function driveMcp({ keep, must }: Driver, { key }: DrivenAgent): Promise<void> {
  const tool = async (place: string, name: string, args: object): Promise<any> => (await must(place, '/mcp', { bearer: key, json: toolCall(name, args) })).result.structuredContent;
  const passcode = keep('passcode by MCP', 'a-passcode-by-another-way');
  const { shareId, deleteToken } = await tool('upload by MCP', 'upload_text', { text: 'bytes', authMode: 'agent', allowedAgentIds: ['receiver'], passcode, operationId: 'by-mcp' });
  await tool('upload by MCP, replayed', 'upload_text', { text: 'bytes', authMode: 'agent', allowedAgentIds: ['receiver'], passcode, operationId: 'by-mcp' });
  keep('delete token by MCP', deleteToken, 'upload by MCP', 'upload by MCP, replayed');
  const { accessToken: accessGrant } = await tool('grant by MCP', 'request_grant', { shareId });
  keep('grant by MCP', accessGrant, 'grant by MCP', 'link by MCP');
  await tool('link by MCP', 'download_link', { shareId, accessGrant });
  for (const sent of [passcode, 'a wrong passcode']) await must('fetch by MCP', '/mcp', { bearer: key, json: toolCall('fetch_share', { shareId, accessGrant, passcode: sent }) });
}

/** The retired surfaces. Their senders put what is secret into forms and headers. */
async function driveLegacy({ keep, send, must }: Driver, session: string): Promise<void> {
  const passcode = keep('passcode of a form', 'a-passcode-in-a-form');
  const form = new FormData();
  form.append('file', new Blob(['bytes']), 'a.txt');
  form.append('passcode', passcode);
  for (const place of ['send a form', 'send a form, replayed']) {
    const sent = await must(place, '/api/upload', { body: form, bearer: session, headers: { 'idempotency-key': 'a-form' } });
    keep('delete token of a form', sent.deleteToken, 'send a form', 'send a form, replayed');
  }
  const headers = { 'tus-resumable': '1.0.0', 'upload-length': '5', 'content-type': 'application/offset+octet-stream', 'x-share-passcode': keep('passcode of an upload', 'a-passcode-in-a-header') };
  const made = await send('send by TUS', '/api/tus', { method: 'POST', bearer: session, headers, body: 'bytes' });
  keep('delete token of an upload', made.json.deleteToken, 'send by TUS', 'look at it by TUS');
  await send('look at it by TUS', made.headers.get('location')!, { method: 'HEAD', bearer: session, headers: { 'tus-resumable': '1.0.0' } });
  await send('misplace a passcode', '/api/tus', { method: 'POST', headers: { 'tus-resumable': '1.0.0', 'upload-length': '5', 'upload-metadata': `passcode ${Buffer.from(passcode).toString('base64')}` } });
}

interface Driven {
  readonly session: string;
  readonly agent: DrivenAgent;
  readonly made: Awaited<ReturnType<typeof driveTransfers>>;
}

async function readBack({ send, must }: Driver, { session, agent: { key, token }, made: { forAgent, locked, init } }: Driven): Promise<void> {
  for (const path of ['/api/owner/session', '/api/agent/keys', '/api/shares', '/api/audit?limit=100', '/api/agent/groups', '/api/agent/permissions']) await must(`GET ${path}`, path, { bearer: session });
  for (const path of [`/api/share/${locked.shareId}`, `/s/${locked.shareId}`, '/openapi.json', '/docs']) await send(`GET ${path}`, path);
  await must('resolve', `/api/share/${forAgent.shareId}`, { bearer: token });
  await must('status', `/api/upload/multipart/status?uploadId=${init.uploadId}`, { bearer: key });
}

/** A secret in every wrong place. */
async function misplace({ send }: Driver, { name, value }: Secret, { session, agent: { key }, made: { forAgent, init } }: Driven): Promise<void> {
  // A password has no form to be known by: what repeats a path, a field's name or a request id repeats it too.
  const hasForm = /^(agk|aos|aat|agrt|dlt)_|^eyJ/.test(value);
  const wrongly = (where: string, path: string, request?: Request) => send(`${name} ${where}`, path, request);
  const inHeaders = ['authorization', 'x-access-grant', 'x-delete-token', 'x-transfer-plan', 'x-share-passcode', 'cookie', ...(hasForm ? ['x-request-id'] : []), 'traceparent', 'idempotency-key', 'if-match', 'range', 'content-digest'];
  for (const header of inHeaders) {
    const headers = { [header]: header === 'cookie' ? `aex_session=${value}` : header === 'authorization' ? `Bearer ${value}` : value };
    await wrongly(`as ${header} of a fetch`, `/api/dl/${forAgent.id}`, { headers });
    await wrongly(`as ${header} of a deletion`, `/api/dl/${init.transferId}`, { method: 'DELETE', headers });
    await wrongly(`as ${header} of a resolve`, `/api/share/${forAgent.shareId}`, { headers });
    if (header !== 'x-transfer-plan') await wrongly(`as ${header} of a plan`, '/api/transfer-plan', { headers, json: { filename: 'a', size: 5 } });
  }
  await wrongly('as Basic', '/api/audit', { headers: { authorization: `Basic ${Buffer.from(`owner:${value}`).toString('base64')}` } });
  for (const path of !hasForm ? [] : [`/api/share/${value}`, `/api/dl/${value}`, `/s/${value}`, `/api/agent/keys/${value}`, `/api/lane/single/${value}`, `/${value}`, `/api/agent/groups/${value}/members/${value}`]) {
    await wrongly('in a path', path);
    await wrongly('in a path of a deletion', path, { method: 'DELETE', bearer: session });
  }
  for (const query of ['share_id', 'cursor', 'agentId', 'unknown']) await wrongly(`in the query as ${query}`, `/api/dl/${forAgent.id}?${query}=${value}`);
  for (const query of ['cursor', 'agentId', 'shareId', 'targetId', 'from', ...(hasForm ? [value] : [])]) await wrongly('in the query of the audit record', `/api/audit?${query}=${value}`, { bearer: session });
  for (const field of ['shareId', 'uploadId', 'agentKey', 'email', 'fromAgentId', 'size', 'policyTemplateId', ...(hasForm ? [value] : [])]) {
    for (const path of ['/api/agent/grants', '/api/upload/multipart/complete', '/api/agent/auth', '/api/owner/session', '/api/transfer-plan']) {
      await wrongly(`in the body as ${field}`, path, { bearer: path === '/api/agent/auth' ? undefined : key, json: { password: 'x', [field]: value } });
    }
  }
  const arguments_ = [toolCall('resolve_share', { shareId: value }), toolCall('fetch_share', { shareId: forAgent.shareId, accessGrant: value, passcode: value }), toolCall('upload_text', { text: 5, filename: `${value}/` })];
  const names = [toolCall(value, {}), toolCall('upload_text', { [value]: 1 }), { ...toolCall('', {}), method: value }, { jsonrpc: value, method: value }];
  for (const json of [...arguments_, ...(hasForm ? names : [])]) await wrongly('in an MCP message', '/mcp', { json });
  await wrongly('as a broken body', '/api/agent/grants', { bearer: key, headers: { 'content-type': 'application/json' }, body: `{"shareId": ${value}` });
}

/** What the launcher made for itself. */
async function ofTheStack(): Promise<Secret[]> {
  const { dataDir, databaseUrl, natsUrl, databaseUrlOf } = stack;
  const secret = (await readFile(join(dataDir, 'secret'), 'utf8')).trim();
  const passwords = { 'administrator of the database': databaseUrl, ...Object.fromEntries(['policy', 'storage', 'audit', 'importer'].map((name) => [name, databaseUrlOf(name)])), nats: natsUrl };
  const own = Object.entries(passwords).flatMap(([name, url]) => {
    const { password } = new URL(url);
    return password === '' ? [] : [{ name: `password of ${name}`, value: decodeURIComponent(password), allowed: name === 'nats' ? ['nats/nats.conf'] : ['postgres-secret'] }];
  });
  return [{ name: 'AEX_SECRET', value: secret, allowed: ['secret'] }, ...own];
}

describe('no secret is found', () => {
  test('in any row of the database', async () => {
    const dump = await dumpDatabase(stack);
    expect(Object.keys(dump)).toEqual(expect.arrayContaining(['audit.events', 'policy.agent_keys', 'storage.transfers']));
    expect(Object.entries(dump).flatMap(([table, rows]) => findSecrets(secrets, table, rows))).toEqual([]);
  });

  test('in any file of the data folder: logs, the stream, the database and its log of changes', () => {
    const searched: string[] = [];
    const found = [...filesBelow(stack.dataDir)].flatMap(([path, bytes]) => {
      searched.push(path);
      return findSecrets(secrets, path, bytes);
    });
    for (const kind of [/^logs\/gateway\.log$/, /^nats\/jetstream\//, /^postgres\/pg_wal\/[0-9A-F]{24}$/, /^postgres\/base\//]) expect(searched.some((path) => kind.test(path)), String(kind)).toBe(true);
    expect(found).toEqual([]);
  });

  test.skipIf(!existsSync('/proc/self/stat'))('in the command line of any process', () => {
    const lines = commandLines(process.pid);
    expect(Object.values(lines).some((line) => line.includes('gateway'))).toBe(true);
    expect(Object.entries(lines).flatMap(([name, line]) => findSecrets(secrets, name, line))).toEqual([]);
  });

  test('in any answer but the one that issues it', () => {
    expect(answers.length).toBeGreaterThan(100);
    expect([...new Set(answers.flatMap(({ place, told }) => findSecrets(secrets, place, told)))]).toEqual([]);
  });
});
