/** The page behind a share's link: what it holds and how to fetch it, spending nothing (interface chapter: Upload response, shareUrl). */
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange, type Agent } from '../support/exchange.ts';
import { expectSafeHeaders } from '../support/safe-headers.ts';
import { codeOf, runInShell, whyNoCurl } from '../support/shell.ts';

const { baseUrl, call, must, signIn, makeAgent, upload, events } = sharedExchange();

let session: string;
let agent: Agent;
beforeAll(async () => {
  session = await signIn();
  agent = await makeAgent(session);
});

const forAgent = () => ({ authMode: 'agent', allowedAgentIds: [agent.agentId] });

/** The text that a person reads, without markup. */
function textOf(page: string): string {
  const body = page.slice(page.indexOf('<main'), page.indexOf('</main>'));
  return body.replace(/<[^>]*>/g, ' ').replaceAll('&#39;', "'").replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&#96;', '`').replaceAll('&amp;', '&').replace(/\s+/g, ' ');
}

const hasButton = (page: string) => /<a class="button"/.test(page);

describe('GET /s/{shareId}', () => {
  test('an open share shows its name, size, type, expiry, remaining uses and a button', async () => {
    const { id, shareId, shareUrl, expiresAt } = await upload('x'.repeat(1_500), { filename: 'report 2026.pdf', mimeType: 'application/pdf', maxUses: 3 });
    const page = await call(shareUrl);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const text = textOf(page.text);
    for (const part of ['report 2026.pdf', '1.4 KiB (1,500 bytes)', 'application/pdf', '3 of 3']) expect(text).toContain(part);
    expect(page.text).toContain(`<time datetime="${expiresAt}">`);
    expect(page.text).toContain(`href="${baseUrl}/api/dl/${id}?share_id=${shareId}"`);
    expect(hasButton(page.text)).toBe(true);
  });

  test('a share without a cap says so', async () => {
    expect(textOf((await call((await upload('x')).shareUrl)).text)).toContain('unlimited until it expires');
  });

  test('an agent share shows what it holds and commands, no button, no agent and no metadata', async () => {
    const { shareUrl } = await upload('secret plan', { ...forAgent(), filename: 'plan.md', policyMetadata: { channel: 'hidden-channel' } }, session);
    const page = await call(shareUrl);
    expect(page.status).toBe(200);
    expect(textOf(page.text)).toContain('plan.md');
    expect(hasButton(page.text)).toBe(false);
    expect(codeOf(page.text, 'curl')).toContain('AEX_AGENT_KEY');
    for (const hidden of [agent.agentId, 'hidden-channel', agent.key, 'secret plan']) expect(page.text).not.toContain(hidden);
  });

  test('looking spends nothing, however often and by whatever', async () => {
    const { shareUrl, downloadUrl, shareId } = await upload('once', { maxUses: 1 }, session);
    for (let look = 0; look < 5; look += 1) expect(textOf((await call(shareUrl)).text)).toContain('1 of 1');
    await call(shareUrl, { headers: { 'sec-purpose': 'prefetch' } });
    expect((await call(downloadUrl)).text).toBe('once');
    const found = await events(session, { shareId }, 4);
    expect(found.map(({ eventType }) => eventType).sort()).toEqual(['share.created', 'share.exhausted', 'transfer.fetched', 'transfer.stored']);
  });

  test('an exhausted share says so and has no button and no commands', async () => {
    const { shareUrl, downloadUrl } = await upload('once', { maxUses: 1 });
    await must(downloadUrl);
    const page = await call(shareUrl);
    expect(page.status).toBe(200);
    expect(textOf(page.text)).toContain('All uses of this share are spent');
    expect(textOf(page.text)).toContain('0 of 1');
    expect(hasButton(page.text)).toBe(false);
    expect(page.text).not.toContain('/api/dl/');
  });

  test('remaining uses go down with each fetch', async () => {
    const { shareUrl, downloadUrl } = await upload('thrice', { maxUses: 3 });
    await must(downloadUrl);
    expect(textOf((await call(shareUrl)).text)).toContain('2 of 3');
  });

  test('a share that is deleted, and one that never was, have the same page', async () => {
    const { shareUrl, id, deleteToken } = await upload('gone');
    await must(`/api/dl/${id}`, { method: 'DELETE', headers: { 'x-delete-token': deleteToken } });
    const deleted = await call(shareUrl);
    const pages = [deleted, await call('/s/shr_0000000000000000000000000'), await call('/s/nothing'), await call('/s/trf_abc'), await call('/s/%3Cscript%3E'), await call('/s/__proto__'), await call(`/s/shr_${'x'.repeat(400)}`)];
    for (const page of pages) {
      expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      expect(page.text).toBe(deleted.text);
      expect(page.text).not.toContain('gone');
      expectSafeHeaders(page.headers);
    }
  });

  test('a share that expires has the page of one that never was', async () => {
    const { shareUrl, expiresAt } = await upload('brief', { ttl: 30 });
    expect((await call(shareUrl)).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, Date.parse(expiresAt) - Date.now()));
    const end = Date.now() + 5_000;
    while ((await call(shareUrl)).status === 200 && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 100));
    const page = await call(shareUrl);
    expect([page.status, page.text]).toEqual([404, (await call('/s/nothing')).text]);
  });

  test('the page may run nothing but its own script, be kept nowhere and be framed nowhere', async () => {
    const { shareUrl } = await upload('x');
    const page = await call(shareUrl);
    expectSafeHeaders(page.headers);
    expect(page.headers.get('cache-control')).toBe('no-store');
    const policy = Object.fromEntries(page.headers.get('content-security-policy')!.split('; ').map((part) => [part.split(' ')[0], part.split(' ').slice(1).join(' ')]));
    expect(policy).toMatchObject({ 'default-src': "'none'", 'script-src': "'self'", 'style-src': "'self'", 'frame-ancestors': "'none'", 'base-uri': "'none'" });
    expect(page.headers.get('content-security-policy')).not.toMatch(/unsafe|\*|https?:/);
    expect(page.text).not.toMatch(/<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=|javascript:/i);
    expect(page.text).toContain('noindex');
  });
});

/** Names that mean harm, and what of them must never stand in the page as it is. */
const hostile: [string, string, string[]][] = [
  ['a script', '<script>alert(1)<script>', ['<script>']],
  ['an image that fails', '"><img src=x onerror=alert(1)>', ['<img', '"><img']],
  ['an end of the title', '<title><svg onload=alert(1)>', ['<svg onload', '<title><']],
  ['quotes of both kinds', `a"b'c\`d`, [`a"b`, `b'c`, 'c`d']],
  ['character references', '&lt;b&gt; &amp; &#x41;', ['>&lt;b&gt; &amp; &#x41;<']],
  ['a right-to-left override', 'invoice\u202Efdp.exe', ['\u202E']],
  ['isolates and marks', 'a\u2066b\u2069c\u200Fd\u061C', ['\u2066', '\u2069', '\u200F', '\u061C']],
  ['zero-width characters', 'pay\u200Bpal\uFEFF.txt', ['\u200B', '\uFEFF']],
  ['a placeholder of a template', '${7*7} {{7*7}} <%= 7*7 %>', ['<%=']],
  ['a shell command', `$(touch pwned) ; rm -rf .\`id\` & "x" 'y'`, [`'y'`]],
];

describe('hostile names on the page of a share', () => {
  test.each(hostile)('%s is shown and does nothing', async (_title, filename, never) => {
    const { shareUrl } = await upload('x', { filename });
    const page = await call(shareUrl);
    expect(page.status).toBe(200);
    for (const part of never) expect(page.text, part).not.toContain(part);
    const visible = filename.replace(/[\u200B\uFEFF\u202E\u2066\u2069\u200F\u061C]/g, (one) => `‹U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}›`);
    expect(textOf(page.text)).toContain(visible.replace(/\s+/g, ' '));
  });

  test.each([['255 bytes', `${'ä'.repeat(125)}.json`], ['emoji', '👩‍👩‍👧 family 🎉.png'], ['other scripts', 'отчёт 报告 تقرير.txt'], ['a leading =', '=1+1.csv'], ['a leading dash', '-rf'], ['one character', 'a']])(
    'a name of %s is shown as it is', async (_title, filename) => {
      const { shareUrl } = await upload('x', { filename });
      expect(textOf((await call(shareUrl)).text)).toContain(filename);
    });
});

const noCurl = whyNoCurl();

describe.skipIf(noCurl !== undefined)(`the commands on the pages${noCurl ? ` (skipped: ${noCurl})` : ''}`, () => {
  const names = ['result.txt', `it's "quoted" & $(touch pwned) \`id\`.txt`, '-rf', '=1+1.csv', '报告 🎉.txt', 'a\u202Etxt.exe'];

  test.each(names)('of an agent share fetch %s with the key in AEX_AGENT_KEY', async (filename) => {
    const { shareUrl } = await upload('bytes for an agent', { ...forAgent(), filename }, session);
    const commands = codeOf((await call(shareUrl)).text, 'curl');
    const ran = await runInShell(commands, { AEX_AGENT_KEY: agent.key });
    expect([ran.code, ran.stderr]).toEqual([0, '']);
    expect(Object.values(ran.files)).toEqual(['bytes for an agent']);
    expect(Object.keys(ran.files)[0]).not.toMatch(/^[-=]|\u202E/);
  });

  test('of an agent share fail for an agent that is not on its list, and leave nothing', async () => {
    const { shareUrl } = await upload('not for you', forAgent(), session);
    const ran = await runInShell(codeOf((await call(shareUrl)).text, 'curl'), { AEX_AGENT_KEY: (await makeAgent(session)).key });
    expect(ran.code).not.toBe(0);
    expect(ran.files).toEqual({});
  });

  test.each(names)('of an open share fetch %s', async (filename) => {
    const { shareUrl } = await upload('bytes for all', { filename });
    const ran = await runInShell(codeOf((await call(shareUrl)).text, 'curl'));
    expect([ran.code, ran.stderr]).toEqual([0, '']);
    expect(Object.values(ran.files)).toEqual(['bytes for all']);
  });

  test('of /docs/planned-upload make a share', async () => {
    const ran = await runInShell(codeOf((await call('/docs/planned-upload')).text, 'curl'));
    expect([ran.code, ran.stderr]).toEqual([0, '']);
    const uploaded = JSON.parse(ran.stdout);
    expect(Object.keys(uploaded).sort()).toEqual(['deleteToken', 'downloadUrl', 'expiresAt', 'id', 'shareId', 'shareUrl']);
    expect((await call(uploaded.downloadUrl)).text).toBe('Hello, agents.\n');
    expect(textOf((await call(uploaded.shareUrl)).text)).toContain('hello.txt');
  });

  test('of the quick start upload, resolve, fetch, ask for a grant and delete', async () => {
    const docs = (await call('/docs')).text;
    const uploaded = JSON.parse((await runInShell(codeOf(docs, 'upload'))).stdout);
    const env = { SHARE_ID: uploaded.shareId, DOWNLOAD_URL: uploaded.downloadUrl, TRANSFER_ID: uploaded.id, DELETE_TOKEN: uploaded.deleteToken };
    expect(JSON.parse((await runInShell(codeOf(docs, 'resolve'), env)).stdout).id).toBe(uploaded.shareId);
    expect((await runInShell(codeOf(docs, 'fetch-open'), env)).files).toEqual({ 'hello.txt': 'Hello, agents.\n' });
    expect(JSON.parse((await runInShell(codeOf(docs, 'delete'), env)).stdout)).toEqual({ id: uploaded.id, deleted: true });
    const shared = await upload('for one agent', forAgent(), session);
    const fetched = await runInShell(codeOf(docs, 'fetch-agent'), { SHARE_ID: shared.shareId, TRANSFER_ID: shared.id, AEX_AGENT_KEY: agent.key });
    expect(fetched.files).toEqual({ 'hello.txt': 'for one agent' });
  });
});
