/** The page of a share: what it holds, how long it lasts, and how to fetch it. The page itself spends nothing. */
import type { OutputOf } from '../shared/contract.ts';
import type { shares } from '../shared/contracts/shares.ts';
import { html, type Content, type Html } from './html.ts';
import { codeBlock, renderPage, rootOf } from './layout.ts';
import { savedName, shellQuoted, showName } from './names.ts';
import { exactSize, moment, readableSize, readableSpan } from './quantities.ts';

type Share = OutputOf<typeof shares.describeShare>;

export interface SharePage {
  readonly share: Share;
  readonly baseUrl: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export function sharePage({ share, baseUrl, now }: SharePage): string {
  const left = Date.parse(share.expiresAt) - now;
  if (left <= 0) return goneSharePage({ baseUrl });
  const name = showName(share.filename);
  const body = html`
<article class="share">
<header class="share-head">
${fileSign(share.filename)}
<div>
<p class="kicker">${kicker(share)}</p>
<h1 class="filename"><bdi translate="no">${name}</bdi></h1>
</div>
</header>
${fetching(share, baseUrl)}
<section aria-labelledby="facts">
<h2 id="facts">Details</h2>
<dl class="facts">
${share.size === undefined ? '' : fact('Size', exactSize(share.size))}
${fact('Type', html`<code translate="no">${share.mimeType}</code>`)}
${fact('Expires', [moment(share.expiresAt), html`<span class="aside">in ${readableSpan(left)}</span>`])}
${fact('Remaining uses', uses(share))}
</dl>
</section>
</article>`;
  return renderPage({ title: name, baseUrl, body, unlisted: true });
}

function kicker({ type, mode }: Share): string {
  if (type === 'pipe') return mode === 'open' ? 'Shared while it is written' : 'Written for named agents';
  return mode === 'open' ? 'Shared file' : 'File for named agents';
}

/** What is fetched from a pipe may not have come to its end. */
function pipeHint({ type }: Share): Content {
  return type === 'pipe' && html`<p class="hint">Its sender may still be writing it: what is there comes at once, the rest as it is written. A download that breaks off is not complete.</p>`;
}

/** For a share that is absent or past its expiry: which of them is told to nobody. */
export function goneSharePage({ baseUrl }: { readonly baseUrl: string }): string {
  const body = html`
<article class="message">
<p class="kicker">404</p>
<h1>This share is not here</h1>
<p>It has expired, was deleted by its sender, or never existed. Check that the address is complete, or ask the sender for a new share.</p>
<p><a href="${rootOf(baseUrl)}/problems/share_not_found_or_expired">What the error means to programs</a></p>
</article>`;
  return renderPage({ title: 'Share not found', baseUrl, body, unlisted: true });
}

function fact(name: string, value: Content): Html {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

function remaining(share: Share): number | undefined {
  return share.remainingUses ?? share.maxUses;
}

function uses(share: Share): string {
  const left = remaining(share);
  if (left === undefined) return 'unlimited until it expires';
  if (share.maxUses === undefined) return left.toLocaleString('en');
  return `${left.toLocaleString('en')} of ${share.maxUses.toLocaleString('en')}`;
}

function buttonSize({ size }: Share): Content {
  return size !== undefined && html`<span class="button-size">${readableSize(size)}</span>`;
}

function fetching(share: Share, baseUrl: string): Html {
  if (remaining(share) === 0) return html`
<p class="notice"><strong>All uses of this share are spent.</strong> Nothing more can be fetched from it. Ask the sender for a new share.</p>`;
  return html`${share.mode === 'open' ? openFetching(share, baseUrl) : agentFetching(share, baseUrl)}${pipeHint(share)}`;
}

function openFetching(share: Share, baseUrl: string): Html {
  const address = `${baseUrl}/api/dl/${share.targetId}?share_id=${share.shareId}`;
  const left = remaining(share);
  return html`
<section aria-labelledby="fetch">
<h2 id="fetch" class="unseen">Fetch</h2>
${share.passcodeRequired ? passcodeForm(share, baseUrl) : html`<p><a class="button" href="${address}" rel="nofollow noreferrer" download>Download ${buttonSize(share)}</a></p>`}
${left !== undefined && html`<p class="hint">${left === 1 ? 'This works once: starting the download spends the last use.' : 'Each download spends one use. Looking at this page spends none.'}</p>`}
${codeBlock({ id: 'curl', label: share.passcodeRequired ? 'From a terminal, with the passcode in PASSCODE' : 'From a terminal', text: `curl -fsS ${passcodeOption(share)}-o ${saveAs(share)} ${shellQuoted(address)}` })}
</section>`;
}

/** Shows itself only where the script runs, which sends the passcode in a header: in an address it would stay in histories and logs. */
function passcodeForm(share: Share, baseUrl: string): Html {
  return html`<p>This file is locked with a passcode. Its sender gave it to you separately.</p>
<form class="passcode" data-address="${rootOf(baseUrl)}/api/dl/${share.targetId}?share_id=${share.shareId}" data-filename="${savedName(share.filename)}" autocomplete="off" hidden>
<label for="passcode">Passcode</label>
<input id="passcode" type="password" required maxlength="256" autocomplete="off" autocapitalize="none" spellcheck="false">
<button type="submit" class="button">Download ${buttonSize(share)}</button>
<p class="passcode-status" role="alert"></p>
</form>
${(share.size ?? 0) > largeInBrowser && html`<p class="hint">A file of this size is better fetched from a terminal: the browser holds all of it before it saves it.</p>`}`;
}

/** Bytes. */
const largeInBrowser = 512 * 1_024 ** 2;

function passcodeOption(share: Share): string {
  return share.passcodeRequired ? '-H "X-Share-Passcode: $PASSCODE" ' : '';
}

function agentFetching(share: Share, baseUrl: string): Html {
  return html`
<section aria-labelledby="fetch">
<h2 id="fetch">Fetch it as an agent</h2>
<p>Only agents on the allow list of this share can fetch it. An allowed agent asks for a one-time grant with its key, then fetches with the grant.</p>
${codeBlock({ id: 'curl', label: share.passcodeRequired ? 'With the agent key in AEX_AGENT_KEY, and the passcode in PASSCODE' : 'With the agent key in AEX_AGENT_KEY', text: agentCommands(share, baseUrl) })}
<p class="hint">A grant works once. To try again, ask for a new one: paste both steps again.</p>
</section>`;
}

function agentCommands(share: Share, baseUrl: string): string {
  return `grant=$(curl -fsS ${shellQuoted(`${baseUrl}/api/agent/grants`)} \\
  -H "Authorization: Bearer $AEX_AGENT_KEY" -H 'Content-Type: application/json' \\
  -d ${shellQuoted(JSON.stringify({ shareId: share.shareId }))} | sed -n 's/.*"accessToken":"\\([^"]*\\)".*/\\1/p')
curl -fsS -H "X-Access-Grant: $grant" ${passcodeOption(share)}-o ${saveAs(share)} ${shellQuoted(`${baseUrl}/api/dl/${share.targetId}`)}`;
}

/** Always a path below the present folder, so that no name is an option or standard output. */
function saveAs(share: Share): string {
  return shellQuoted(`./${savedName(share.filename)}`);
}

/** A sheet with the end of the name on it. */
function fileSign(filename: string): Html {
  const ending = /\.([A-Za-z0-9]{1,4})$/.exec(filename)?.[1];
  return html`<svg class="file" viewBox="0 0 56 68" width="56" height="68" aria-hidden="true" focusable="false"><path class="file-sheet" d="M6 2h30l14 14v46a4 4 0 0 1-4 4H6a4 4 0 0 1-4-4V6a4 4 0 0 1 4-4z" stroke-width="2"/><path class="file-fold" d="M36 2v10a4 4 0 0 0 4 4h10" fill="none" stroke-width="2"/>${ending && html`<text class="file-ending" x="26" y="48" text-anchor="middle" font-size="13" font-weight="700">${ending.toUpperCase()}</text>`}</svg>`;
}
