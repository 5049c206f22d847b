/** The page of a share: what it says in each state, and that no name breaks out of it. */
import { describe, expect, test } from 'vitest';
import { goneSharePage, sharePage } from './share-page.ts';

const baseUrl = 'https://exchange.example';
const now = Date.parse('2026-03-01T12:00:00Z');
const share = {
  shareId: 'shr_a1', type: 'file' as const, targetId: 'trf_b2', filename: 'report.pdf', mimeType: 'application/pdf', size: 1_468_006,
  mode: 'open' as const, expiresAt: '2026-03-02T11:59:00.000Z',
};
const address = 'https://exchange.example/api/dl/trf_b2?share_id=shr_a1';

describe('share page', () => {
  test('an open share shows its facts, a download link and a command', () => {
    const page = sharePage({ share, baseUrl, now });
    for (const part of ['report.pdf', '1.3 MiB (1,468,006 bytes)', 'application/pdf', '<time datetime="2026-03-02T11:59:00.000Z">', 'in 23 hours 59 minutes', 'unlimited until it expires']) expect(page).toContain(part);
    expect(page).toContain(`<a class="button" href="${address}" rel="nofollow noreferrer" download>`);
    expect(page).toContain(`curl -fsS -o &#39;./report.pdf&#39; &#39;${address}&#39;`);
  });

  test('is not indexed, sends no referrer, and carries no inline script, style or event', () => {
    const page = sharePage({ share, baseUrl, now });
    expect(page).toContain('<meta name="robots" content="noindex');
    expect(page).toContain('<meta name="referrer" content="no-referrer">');
    expect(page).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?! src="\/assets\/page\.js" defer><\/script>)|rel="(prefetch|preload|prerender|preconnect)/);
  });

  test('loads its own stylesheet, script and icon only', () => {
    const loaded = [...sharePage({ share, baseUrl, now }).matchAll(/(?:<link[^>]*href|src)="([^"]*)"/g)].map((match) => match[1]);
    expect(loaded).toEqual(['/assets/favicon.svg', '/assets/page.css', '/assets/page.js']);
  });

  test('a capped share says how many uses are left', () => {
    expect(sharePage({ share: { ...share, maxUses: 3, remainingUses: 2 }, baseUrl, now })).toContain('2 of 3');
  });

  test('a spent share has a sentence in place of the button and the command', () => {
    const page = sharePage({ share: { ...share, maxUses: 1, remainingUses: 0 }, baseUrl, now });
    expect(page).toContain('All uses of this share are spent.');
    expect(page).not.toContain('/api/dl/');
  });

  test('an agent share has commands for grant and fetch, and no button', () => {
    const page = sharePage({ share: { ...share, mode: 'agent' }, baseUrl, now });
    expect(page).toContain('https://exchange.example/api/agent/grants');
    expect(page).toContain('X-Access-Grant: $grant');
    expect(page).not.toContain('class="button"');
    expect(page).not.toContain('share_id=');
  });

  test('a share with a passcode has a form for the script and a command with the header, and no address that works by itself', () => {
    const page = sharePage({ share: { ...share, passcodeRequired: true }, baseUrl, now });
    expect(page).toMatch(/<form class="passcode" data-address="\/api\/dl\/trf_b2\?share_id=shr_a1" data-filename="report.pdf"[^>]* hidden>/);
    expect(page).not.toMatch(/<input[^>]* name=|<form[^>]* (action|method)=/);
    expect(page).not.toContain('<a class="button"');
    expect(page).toContain(`curl -fsS -H &quot;X-Share-Passcode: $PASSCODE&quot; -o &#39;./report.pdf&#39; &#39;${address}&#39;`);
    expect(page).not.toContain('better fetched from a terminal');
    expect(sharePage({ share: { ...share, size: 2 ** 31, passcodeRequired: true }, baseUrl, now })).toContain('better fetched from a terminal');
  });

  test('an agent share with a passcode has it in the command of the fetch', () => {
    const page = sharePage({ share: { ...share, mode: 'agent', passcodeRequired: true }, baseUrl, now });
    expect(page).toContain('-H &quot;X-Access-Grant: $grant&quot; -H &quot;X-Share-Passcode: $PASSCODE&quot; -o');
    expect(page).not.toContain('<form');
  });

  test('a share past its expiry is gone, whatever else it says', () => {
    expect(sharePage({ share, baseUrl, now: Date.parse(share.expiresAt) })).toBe(goneSharePage({ baseUrl }));
  });

  test('a hostile name stays text on the page and one word in the command', () => {
    const filename = `-o"><script>alert(1)</script>'$(id)\`id\`\u202egpj.exe`;
    const page = sharePage({ share: { ...share, filename }, baseUrl, now });
    expect(page).not.toContain('<script>');
    expect(page).not.toContain('\u202e');
    expect(page).toContain('<bdi translate="no">-o&quot;&gt;&lt;script&gt;');
    expect(page).toContain('‹U+202E›gpj.exe');
    expect(page).toContain('-o &#39;./_o&quot;&gt;&lt;script&gt;alert(1)&lt;_script&gt;&#39;\\&#39;&#39;$(id)&#96;id&#96;_gpj.exe&#39; ');
  });

  test('a base address with a path keeps it', () => {
    expect(sharePage({ share, baseUrl: 'https://example.com/aex', now })).toContain('href="/aex/assets/page.css"');
  });
});
