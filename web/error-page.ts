/** What a person sees in a browser where a program would be sent a problem document. */
import { errorTable, type ErrorCode } from '../shared/errors.ts';
import { html, prose } from './html.ts';
import { renderPage, rootOf } from './layout.ts';

export interface ErrorPage {
  readonly code: ErrorCode;
  readonly baseUrl: string;
  /** One sentence about this occurrence. */
  readonly detail?: string | undefined;
  readonly requestId?: string | undefined;
}

export function errorPage({ code, baseUrl, detail, requestId }: ErrorPage): string {
  const { status, title, advice } = errorTable[code];
  const body = html`
<article class="message">
<p class="kicker">${status}</p>
<h1>${title}</h1>
${detail && detail !== title && html`<p>${detail}</p>`}
<p>${prose(advice)}</p>
<p><a href="${rootOf(baseUrl)}/problems/${code}">About <code>${code}</code></a></p>
${requestId && html`<p class="hint">Request <code>${requestId}</code></p>`}
</article>`;
  return renderPage({ title, baseUrl, body, unlisted: true });
}
