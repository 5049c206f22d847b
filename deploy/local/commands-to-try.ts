// Three commands that a person can paste to see the system work; they need curl and Node, nothing else.
import type { OwnerAccount } from './secrets.ts';

const json = `-H 'Content-Type: application/json'`;
const readJson = 'JSON.parse(require("fs").readFileSync(0))';

/** The commands for a system at `baseUrl`, each one line of shell. */
export function commandsToTry(baseUrl: string, owner: OwnerAccount): { purpose: string; command: string }[] {
  return [
    { purpose: 'share a small file: plan the upload, then send the bytes', command: plannedUpload(baseUrl) },
    { purpose: 'look around: the health check here, the documentation in a browser at /docs', command: `curl -s ${baseUrl}/healthz` },
    { purpose: 'sign in as the owner and read the audit record', command: auditRecord(baseUrl, owner) },
  ];
}

function plannedUpload(baseUrl: string): string {
  const text = 'Hello from my agent';
  const plan = { filename: 'hello.txt', size: text.length, mimeType: 'text/plain' };
  // The plan's answer becomes the second curl's own configuration: its address and headers.
  const configuration =
    `const u = ${readJson}.upload; ["url=" + JSON.stringify(new URL(u.url, "${baseUrl}").href), ` +
    `...Object.entries(u.headers).map(h => "header=" + JSON.stringify(h.join(": ")))].join("\\n")`;
  return (
    `curl -s ${baseUrl}/api/transfer-plan ${json} -d '${JSON.stringify(plan)}' | node -p '${configuration}' | ` +
    `curl -s -K - -X PUT -H 'Content-Type: text/plain' --data-binary '${text}'`
  );
}

function auditRecord(baseUrl: string, owner: OwnerAccount): string {
  return (
    `token=$(curl -s ${baseUrl}/api/owner/session ${json} -d '${JSON.stringify(owner)}' | node -p '${readJson}.token') && ` +
    `curl -s ${baseUrl}/api/audit -H "Authorization: Bearer $token"`
  );
}
