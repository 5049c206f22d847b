/** The page that the retired upload surfaces point to: a planned upload in five lines. */
import { html } from './html.ts';
import { codeBlock, renderPage, rootOf } from './layout.ts';
import { shellQuoted } from './names.ts';

export function plannedUploadPage({ baseUrl }: { readonly baseUrl: string }): string {
  const root = rootOf(baseUrl);
  const body = html`
<h1>A planned upload</h1>
<p class="lead">First ask for a plan: it fixes what may be stored and under which policy, and is signed before anything is stored. Then send the bytes where the plan says.</p>
${codeBlock({ id: 'curl', label: 'Five lines of curl', text: uploadWithCurl(baseUrl) })}
${codeBlock({ id: 'typescript', label: 'Five lines of TypeScript', text: uploadWithFetch(baseUrl) })}
<section aria-labelledby="answer">
<h2 id="answer">What comes back</h2>
<p>201 with the finished share. Pass <code>shareUrl</code> on to people and <code>shareId</code> to agents; keep <code>deleteToken</code> to yourself.</p>
${codeBlock({ id: 'example', label: '201 Created', text: exampleAnswer(baseUrl) })}
</section>
<section aria-labelledby="policy">
<h2 id="policy">Who may fetch it</h2>
<p>Policy fields go into the request for the plan. A share for two agents that works twice within an hour:</p>
${codeBlock({ id: 'release', label: 'Body of POST /api/transfer-plan', text: examplePolicy })}
</section>
<section aria-labelledby="large">
<h2 id="large">Large files</h2>
<p>Leave <code>lane</code> out and the plan chooses: beyond 64 MiB it plans parts that are sent in parallel and can be resumed. See <a href="${root}/docs">the documentation</a>.</p>
</section>`;
  return renderPage({ title: 'A planned upload', baseUrl, body, current: 'planned-upload' });
}

/** In lines, so that the file is streamed from disk and no tool beside curl and sed is needed. */
export function uploadWithCurl(baseUrl: string): string {
  return `file=hello.txt; echo 'Hello, agents.' > "$file"
plan=$(curl -fsS ${shellQuoted(`${baseUrl}/api/transfer-plan`)} -H 'Content-Type: application/json' -d '{"filename":"hello.txt","size":15,"mimeType":"text/plain","lane":"single"}')
url=$(printf %s "$plan" | sed -n 's/.*"upload":{[^}]*"url":"\\([^"]*\\)".*/\\1/p')
token=$(printf %s "$plan" | sed -n 's/.*"X-Transfer-Plan":"\\([^"]*\\)".*/\\1/p')
curl -fsS -T "$file" -H "X-Transfer-Plan: $token" -H 'Content-Type: application/octet-stream' "$url"`;
}

export function uploadWithFetch(baseUrl: string): string {
  return `const body = new TextEncoder().encode('Hello, agents.\\n');
const wanted = JSON.stringify({ filename: 'hello.txt', size: body.length, mimeType: 'text/plain', lane: 'single' });
const plan: any = await (await fetch(${JSON.stringify(`${baseUrl}/api/transfer-plan`)}, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: wanted })).json();
const stored = await fetch(plan.upload.url, { method: plan.upload.method, headers: plan.upload.headers, body });
console.log(stored.status, await stored.json());`;
}

function exampleAnswer(baseUrl: string): string {
  return JSON.stringify({
    id: 'trf_…', shareId: 'shr_…', shareUrl: `${baseUrl}/s/shr_…`, downloadUrl: `${baseUrl}/api/dl/trf_…?share_id=shr_…`,
    expiresAt: '2026-01-01T00:00:00.000Z', deleteToken: 'dlt_…',
  }, undefined, 2);
}

const examplePolicy = JSON.stringify({
  filename: 'report.pdf', size: 48_213, mimeType: 'application/pdf', lane: 'single',
  authMode: 'agent', allowedAgentIds: ['agt_research', 'agt_review'], maxUses: 2, ttl: 3_600,
}, undefined, 2);
