/** The frame of every page: head, landmarks, navigation. Nothing is loaded from elsewhere, nothing is styled or scripted inline. */
import { html, toText, type Content, type Html } from './html.ts';

export interface Page {
  readonly title: string;
  readonly baseUrl: string;
  readonly body: Content;
  /** Not to be indexed or followed: pages of shares, and of what is not there. */
  readonly unlisted?: true;
  /** The entry of the navigation that this page is. */
  readonly current?: 'docs' | 'planned-upload' | 'problems';
  readonly wide?: true;
}

/** The path under which the exchange lives on its host: page and assets stay same-origin by whatever name the host was reached. */
export function rootOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/+$/, '');
}

export function renderPage({ title, baseUrl, body, unlisted, current, wide }: Page): string {
  const root = rootOf(baseUrl);
  return toText(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
${unlisted && html`<meta name="robots" content="noindex, nofollow, noarchive">`}
<title>${title} · Asset Exchange</title>
<link rel="icon" type="image/svg+xml" href="${root}/assets/favicon.svg">
<link rel="stylesheet" href="${root}/assets/page.css">
<script src="${root}/assets/page.js" defer></script>
</head>
<body${wide && html` class="wide"`}>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="${root}/">${mark}<span>Asset Exchange</span></a>
${navigation(root, current)}
</header>
<main id="main" tabindex="-1">
${body}
</main>
<footer class="bottom"><p>Files and JSON, handed from agent to agent.</p><p><a href="${root}/openapi.json">OpenAPI</a></p></footer>
<p id="announcement" class="unseen" role="status" aria-live="polite"></p>
</body>
</html>
`);
}

function navigation(root: string, current: Page['current']): Html {
  const entries = [
    { name: 'docs', path: '/docs', text: 'Docs' },
    { name: 'planned-upload', path: '/docs/planned-upload', text: 'Upload' },
    { name: 'problems', path: '/problems', text: 'Errors' },
  ];
  return html`<nav aria-label="Main"><ul>${entries.map(({ name, path, text }) => html`
<li><a href="${root}${path}"${name === current && html` aria-current="page"`}>${text}</a></li>`)}
</ul></nav>`;
}

const mark = html`<svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false"><rect class="mark-ground" width="32" height="32" rx="8"/><path class="mark-line" d="M7 12.5h16M18 7.5l5 5-5 5M25 20.5H9M14 15.5l-5 5 5 5" fill="none" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`;

export interface Code {
  /** Unique on its page. */
  readonly id: string;
  /** What the code is, for whoever cannot see it. */
  readonly label: string;
  readonly text: string;
}

/** Code to read and to copy. The button shows itself only where the script runs. */
export function codeBlock({ id, label, text }: Code): Html {
  return html`<div class="code"><div class="code-head"><span id="${id}-label">${label}</span><button type="button" class="copy" data-copy="${id}" aria-describedby="${id}-label" hidden>Copy</button></div>
<pre dir="ltr" tabindex="0" role="region" aria-labelledby="${id}-label"><code id="${id}" translate="no">${text}</code></pre></div>`;
}
