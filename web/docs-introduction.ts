/** The introduction of the documentation: the four primitives, the quick start, credentials and conventions. */
import { html, type Html } from './html.ts';
import { codeBlock, rootOf } from './layout.ts';
import { shellQuoted } from './names.ts';
import { uploadWithCurl } from './planned-upload-page.ts';

export function introduction(baseUrl: string): Html {
  const root = rootOf(baseUrl);
  return html`
<section aria-labelledby="primitives">
<h2 id="primitives">Four primitives</h2>
<ol class="primitives">
<li><strong>Upload</strong> Ask for a signed plan, send the bytes where it says. The answer is a share: a link with a policy.</li>
<li><strong>Resolve</strong> Read what a share holds and who may fetch it. Nothing is spent.</li>
<li><strong>Grant</strong> On an agent share, an agent of the allow list gets a token that works once, for a short time.</li>
<li><strong>Fetch</strong> Get the bytes: with the share id on an open share, with the grant on an agent share.</li>
</ol>
<p>And <strong>delete</strong>: the owner, or whoever holds the delete token, ends a transfer before its expiry.</p>
</section>
<section aria-labelledby="quick-start">
<h2 id="quick-start">Quick start</h2>
${codeBlock({ id: 'upload', label: 'Upload', text: uploadWithCurl(baseUrl) })}
${codeBlock({ id: 'resolve', label: 'Resolve', text: `curl -fsS ${shellQuoted(`${baseUrl}/api/share/`)}"$SHARE_ID"` })}
${codeBlock({ id: 'fetch-open', label: 'Fetch from an open share: the downloadUrl of the upload', text: 'curl -fsS -o hello.txt "$DOWNLOAD_URL"' })}
${codeBlock({ id: 'fetch-agent', label: 'Grant and fetch, as an agent', text: grantAndFetch(baseUrl) })}
${codeBlock({ id: 'delete', label: 'Delete', text: `curl -fsS -X DELETE -H "X-Delete-Token: $DELETE_TOKEN" ${shellQuoted(`${baseUrl}/api/dl/`)}"$TRANSFER_ID"` })}
<p>The same upload in TypeScript: <a href="${root}/docs/planned-upload">a planned upload</a>.</p>
</section>
${credentials}
${conventions(root)}`;
}

function grantAndFetch(baseUrl: string): string {
  return `grant=$(curl -fsS ${shellQuoted(`${baseUrl}/api/agent/grants`)} -H "Authorization: Bearer $AEX_AGENT_KEY" \\
  -H 'Content-Type: application/json' -d "{\\"shareId\\":\\"$SHARE_ID\\"}" | sed -n 's/.*"accessToken":"\\([^"]*\\)".*/\\1/p')
curl -fsS -H "X-Access-Grant: $grant" -o hello.txt ${shellQuoted(`${baseUrl}/api/dl/`)}"$TRANSFER_ID"`;
}

const credentials = html`
<section aria-labelledby="credentials">
<h2 id="credentials">Credentials</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Credentials">
<table>
<thead><tr><th scope="col">Credential</th><th scope="col">Form</th><th scope="col">Sent as</th><th scope="col">Good for</th></tr></thead>
<tbody>
<tr><th scope="row">Agent key</th><td><code>agk_…</code></td><td><code>Authorization: Bearer</code></td><td>resolve, grants, uploads in the agent’s name</td></tr>
<tr><th scope="row">Access token</th><td><code>aat_…</code></td><td><code>Authorization: Bearer</code></td><td>resolve, for 15 minutes</td></tr>
<tr><th scope="row">Grant</th><td><code>agrt_…</code></td><td><code>X-Access-Grant</code></td><td>one fetch of one target</td></tr>
<tr><th scope="row">Passcode</th><td>the sender’s choice</td><td><code>X-Share-Passcode</code></td><td>fetching from a share that has one</td></tr>
<tr><th scope="row">Delete token</th><td><code>dlt_…</code></td><td><code>X-Delete-Token</code></td><td>deleting one transfer</td></tr>
<tr><th scope="row">Owner session</th><td><code>aos_…</code></td><td>cookie, or <code>Authorization: Bearer</code></td><td>keys, audit, the owner’s own shares and transfers</td></tr>
</tbody>
</table>
</div>
</section>`;

function conventions(root: string): Html {
  return html`
<section aria-labelledby="conventions">
<h2 id="conventions">Conventions</h2>
<ul class="plain">
<li>JSON in UTF-8; times are ISO 8601; sizes are bytes; ttl is in seconds.</li>
<li>A refusal is a problem document with a stable <code>code</code>: <a href="${root}/problems">all error codes</a>.</li>
<li>Endpoints that create take an <code>Idempotency-Key</code>. The same key and request within 24 hours gives the first answer again, so a request whose outcome is unknown is simply sent again.</li>
<li>Each full or partial download spends one use or its grant; <code>HEAD</code>, refusals and looking at a share’s page spend none. To try a protected fetch again, ask for a new grant.</li>
</ul>
</section>`;
}
