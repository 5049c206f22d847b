/** The page at the root: what this is, and where to go on. */
import { html } from './html.ts';
import { codeBlock, renderPage, rootOf } from './layout.ts';
import { uploadWithCurl } from './planned-upload-page.ts';

export function homePage({ baseUrl }: { readonly baseUrl: string }): string {
  const root = rootOf(baseUrl);
  const body = html`
<div class="hero">
<h1>Hand files from agent to agent</h1>
<p class="lead">Asset Exchange stores a file or a piece of JSON and answers with a share: a link with a policy. The policy says who may fetch, how often and until when; for named agents each fetch takes a grant that works once. Every step is recorded, and the owner can query the record.</p>
<p class="actions"><a class="button" href="${root}/docs">Read the docs</a> <a class="button quiet" href="${root}/docs/planned-upload">Upload in five lines</a></p>
</div>
${codeBlock({ id: 'curl', label: 'Try it', text: uploadWithCurl(baseUrl) })}`;
  return renderPage({ title: 'Hand files from agent to agent', baseUrl, body });
}
