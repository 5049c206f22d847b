/** The page behind each problem's `type`: what an error code means and what to do about it; and the index of all of them. */
import { errorCodes, errorTable, type ErrorCode } from '../shared/errors.ts';
import { html, prose } from './html.ts';
import { codeBlock, renderPage, rootOf } from './layout.ts';

export interface ProblemPage {
  readonly code: ErrorCode;
  readonly entry: (typeof errorTable)[ErrorCode];
  readonly baseUrl: string;
}

export function problemPage({ code, entry, baseUrl }: ProblemPage): string {
  const root = rootOf(baseUrl);
  const body = html`
<article class="message">
<p class="kicker"><a href="${root}/problems">Errors</a></p>
<h1>${entry.title}</h1>
<dl class="facts">
<div><dt>Code</dt><dd><code translate="no">${code}</code></dd></div>
<div><dt>HTTP status</dt><dd>${entry.status}</dd></div>
<div><dt>Same request again</dt><dd>${entry.retryable ? 'may succeed' : 'will not help'}</dd></div>
</dl>
<section aria-labelledby="advice">
<h2 id="advice">What to do</h2>
<p>${prose(entry.advice)}</p>
</section>
<section aria-labelledby="answer">
<h2 id="answer">How it is answered</h2>
${codeBlock({ id: 'example', label: 'application/problem+json', text: exampleOf(code, entry, baseUrl) })}
</section>
</article>`;
  return renderPage({ title: code, baseUrl, body });
}

function exampleOf(code: ErrorCode, { status, title, retryable }: ProblemPage['entry'], baseUrl: string): string {
  const problem = { type: `${baseUrl}/problems/${code}`, title, status, code, requestId: '…', retryable: retryable === true };
  return JSON.stringify(problem, undefined, 2);
}

export function problemsIndexPage({ baseUrl }: { readonly baseUrl: string }): string {
  const root = rootOf(baseUrl);
  const body = html`
<h1>Errors</h1>
<p class="lead">Every refusal is an <code>application/problem+json</code> document (RFC 9457). Switch on its <code>code</code>; the texts may change, the codes do not.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Error codes">
<table>
<thead><tr><th scope="col">Status</th><th scope="col">Code</th><th scope="col">Meaning</th></tr></thead>
<tbody>${errorCodes.map((code) => html`
<tr><td>${errorTable[code].status}</td><td><a href="${root}/problems/${code}"><code translate="no">${code}</code></a></td><td>${errorTable[code].title}</td></tr>`)}
</tbody>
</table>
</div>`;
  return renderPage({ title: 'Errors', baseUrl, body, current: 'problems', wide: true });
}
