/** What only a browser can show: that other sites change nothing in a visitor's name, and that the pages run none of what they show. */
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';

/** Debian's package `chromium`; another place by a setting. */
const executablePath = process.env['AEX_TEST_CHROMIUM'] ?? '/usr/bin/chromium';
const hasBrowser = existsSync(executablePath);
if (!hasBrowser) process.stdout.write(`Skipping the browser tests: there is no ${executablePath} (on Debian: apt-get install chromium; elsewhere set AEX_TEST_CHROMIUM).\n`);

const exchange = sharedExchange();
const { baseUrl, must, upload, owner } = exchange;
const keysPath = '/api/agent/keys';

let browser: Browser;
let elsewhere: Server;
let session: string;

/** A page on another port of the same host: to a browser the same site, so that SameSite cookies go along, and another origin. */
const attackUrl = () => `http://localhost:${(elsewhere.address() as AddressInfo).port}/`;

beforeAll(async () => {
  if (!hasBrowser) return;
  elsewhere = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><title>elsewhere</title>')).listen(0, '127.0.0.1');
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
  session = await exchange.signIn();
});
afterAll(async () => {
  await browser?.close();
  elsewhere?.close();
});

/** A visitor who is signed in. Our own pages may not even fetch; what the cookie allows is asked past that. */
async function signedIn(): Promise<Page> {
  const page = await (await browser.newContext({ bypassCSP: true })).newPage();
  await page.goto(baseUrl);
  const status = await page.evaluate(async (json) => (await fetch('/api/owner/session', { method: 'POST', headers: { 'content-type': 'application/json' }, body: json })).status, JSON.stringify(owner));
  expect(status).toBe(201);
  return page;
}

const countKeys = async () => (await must(keysPath, { bearer: session })).json.count as number;

describe.runIf(hasBrowser)('the session cookie', () => {
  test('works on our own pages, and no script can read it', async () => {
    const page = await signedIn();
    const before = await countKeys();
    expect(await page.evaluate(async (path) => (await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })).status, keysPath)).toBe(201);
    expect(await countKeys()).toBe(before + 1);
    expect(await page.evaluate(() => document.cookie)).toBe('');
  });

  test('changes nothing when another origin sends it by a form, by fetch or by a beacon', async () => {
    const page = await signedIn();
    const before = await countKeys();
    const target = `${baseUrl}${keysPath}`;
    await page.goto(attackUrl());
    await page.evaluate(async (url) => {
      const attempts = [
        { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } },
        { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } },
        { method: 'POST' },
        { method: 'DELETE' },
      ];
      for (const attempt of attempts) {
        for (const mode of ['cors', 'no-cors'] as const) await fetch(url, { ...attempt, mode, credentials: 'include' }).catch(() => undefined);
      }
      navigator.sendBeacon(url, new Blob(['{}'], { type: 'text/plain' }));
    }, target);
    const answered = page.waitForResponse((response) => response.url() === target && response.request().isNavigationRequest());
    await page.evaluate((url) => {
      const form = document.createElement('form');
      Object.assign(form, { method: 'post', action: url, enctype: 'text/plain' });
      document.body.append(form);
      form.submit();
    }, target);
    expect([403, 415]).toContain((await answered).status());
    // The browser goes where the form led before it can be sent elsewhere.
    await page.waitForURL(target);
    expect(await countKeys()).toBe(before);
    // The visitor is still signed in: nothing of it ended the session either.
    await page.goto(baseUrl);
    expect(await page.evaluate(async () => (await fetch('/api/owner/session')).status)).toBe(200);
  });
});

describe.runIf(hasBrowser)('what was uploaded', () => {
  test.each([
    ['page.html', 'text/html', '<script>window.name = "ran"</script>'],
    ['image.svg', 'image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" onload="window.name = \'ran\'"/>'],
    ['page.xhtml', 'application/xhtml+xml', '<html xmlns="http://www.w3.org/1999/xhtml"><script>window.name = "ran"</script></html>'],
    ['notes.txt', 'text/plain', '<script>window.name = "ran"</script>'],
  ])('%s is saved, never run', async (filename, mimeType, content) => {
    const sent = await upload(content, { filename, mimeType });
    const page = await (await browser.newContext({ acceptDownloads: true })).newPage();
    await page.goto(sent.shareUrl);
    const download = page.waitForEvent('download');
    await page.goto(sent.downloadUrl).catch(() => undefined);
    expect((await download).suggestedFilename()).toBe(filename);
    expect(await page.evaluate(() => window.name)).toBe('');
  });

  test('a hostile name is text on its page, which says nothing against its own policy', async () => {
    const filename = '"><img src=x onerror="window.name=1">‮gpj.exe';
    const sent = await upload('x', { filename, maxUses: 1 });
    const page = await (await browser.newContext()).newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    await page.goto(sent.shareUrl);
    expect(await page.evaluate(() => window.name)).toBe('');
    expect(await page.locator('h1').textContent()).toContain('<img src=x');
    expect(complaints).toEqual([]);
    expect((await must(sent.downloadUrl)).headers.get('x-remaining-uses')).toBe('0');
  });
});
