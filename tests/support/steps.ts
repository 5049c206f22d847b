/** The single steps of the load: each asks the exchange for one thing and writes down what it was told. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkBytes, countFetch, judge, noFetches, sha256, type Grant, type Ledger, type Stored } from './ledger.ts';
import { isDefinite, type Reply, type Wire } from './wire.ts';

/** Who acts in a storm. Uploads are the owner's, so that the owner sees every event. */
export interface Actors {
  readonly wire: Wire;
  readonly ledger: Ledger;
  /** A session token of the owner. */
  readonly session: string;
  readonly agent: { readonly agentId: string; readonly key: string };
}

/** Long enough for any outage of these tests; a client that gives up sooner would leave its outcome unknown. */
const patienceMs = 60_000;
const againMs = 100;

/** Sends the same request until its outcome is known. */
export async function persist(what: string, send: () => Promise<Reply>): Promise<Reply> {
  for (const end = Date.now() + patienceMs; ; await sleep(againMs)) {
    const reply = await send();
    if (isDefinite(reply)) return reply;
    if (Date.now() > end) throw new Error(`${what} had no answer within ${patienceMs} ms: ${reply.status} ${reply.bytes}`);
  }
}

export interface Wanted {
  readonly kind: Stored['kind'];
  readonly lane: Stored['lane'];
  readonly size: number;
  readonly maxUses?: number;
}

/** Plans and uploads random bytes, and goes on with the same plan until it is told that they are stored. */
export async function upload(actors: Actors, wanted: Wanted): Promise<void> {
  const { wire, ledger, session } = actors;
  const bytes = randomBytes(wanted.size);
  const planned = await persist('plan', () => wire.send('/api/transfer-plan', { bearer: session, json: planOf(actors, wanted) }));
  if (!judge(ledger, 'plan', planned, [201])) return;
  const finish = wanted.lane === 'single' ? sendSingle : sendParts;
  const reply = await finish(actors, planned, bytes);
  if (!reply || !judge(ledger, `upload by the ${wanted.lane} lane`, reply, [201])) return;
  const { id, shareId, deleteToken } = reply.json;
  const { kind, lane, maxUses = Infinity } = wanted;
  ledger.stored.push({ id, shareId, deleteToken, sha256: sha256(bytes), kind, lane, maxUses, deleting: false, deleted: false, fetches: noFetches() });
  ledger.lastChange = Date.now();
}

function planOf({ agent }: Actors, { kind, lane, size, maxUses }: Wanted): object {
  return {
    filename: 'storm.bin', mimeType: 'application/octet-stream', size, lane,
    ...(lane === 'multipart' && { partSize: partBytes }),
    ...(maxUses && { maxUses }),
    ...(kind === 'granted' && { authMode: 'agent', allowedAgentIds: [agent.agentId] }),
  };
}

async function sendSingle({ wire }: Actors, planned: Reply, bytes: Buffer): Promise<Reply> {
  const { method, url, headers } = planned.json.upload;
  return persist('upload', () => wire.send(new URL(url).pathname, { method, headers, body: bytes }));
}

/** Bytes of a part; the stack of the fault tests allows parts this small. */
export const partBytes = 65_536;

async function sendParts({ wire, ledger }: Actors, planned: Reply, bytes: Buffer): Promise<Reply | undefined> {
  const headers = { 'x-transfer-plan': planned.json.plan as string };
  const begun = await persist('init', () => wire.send('/api/upload/multipart/init', { headers, json: { filename: 'storm.bin', mimeType: 'application/octet-stream', size: bytes.length } }));
  if (!judge(ledger, 'init', begun, [201])) return undefined;
  const { uploadId } = begun.json;
  for (let at = 0, number = 1; at < bytes.length; at += partBytes, number += 1) {
    const path = `/api/upload/multipart/part?uploadId=${uploadId}&partNumber=${number}`;
    const part = await persist('part', () => wire.send(path, { headers, body: bytes.subarray(at, at + partBytes) }));
    if (!judge(ledger, 'part', part, [200])) return undefined;
  }
  return persist('complete', () => wire.send('/api/upload/multipart/complete', { headers, json: { uploadId } }));
}

/** One fetch, never repeated: what it spends is counted. */
export async function fetchStored({ wire, ledger }: Actors, stored: Stored, grant?: Grant): Promise<Reply> {
  const reply = await wire.send(`/api/dl/${stored.id}?share_id=${stored.shareId}`, grant ? { headers: { 'x-access-grant': grant.token } } : {});
  countFetch(reply, stored.fetches, ...(grant ? [grant.fetches] : []));
  const refusals = stored.deleting ? [404] : stored.kind === 'capped' ? [410] : grant ? [409] : [];
  judge(ledger, `fetch of ${stored.kind} ${stored.id}`, reply, [200, ...refusals]);
  checkBytes(ledger, stored, reply);
  return reply;
}

export async function resolve({ wire, ledger, agent }: Actors, stored: Stored): Promise<Reply> {
  const reply = await wire.send(`/api/share/${stored.shareId}`, { bearer: stored.kind === 'granted' ? agent.key : undefined });
  judge(ledger, `resolve of ${stored.kind} ${stored.id}`, reply, [200, ...(stored.deleting ? [404] : [])]);
  return reply;
}

export async function issueGrant({ wire, ledger, agent }: Actors, stored: Stored): Promise<Grant | undefined> {
  const reply = await wire.send('/api/agent/grants', { bearer: agent.key, json: { shareId: stored.shareId } });
  if (!judge(ledger, `grant for ${stored.id}`, reply, [201])) return undefined;
  const grant = { token: reply.json.accessToken as string, stored, issuedAt: Date.now(), fetches: noFetches() };
  ledger.grants.push(grant);
  return grant;
}

/** Deletes, and goes on until the deletion is acknowledged. */
export async function remove({ wire, ledger }: Actors, stored: Stored): Promise<void> {
  stored.deleting = true;
  const reply = await persist('delete', () => wire.send(`/api/dl/${stored.id}`, { method: 'DELETE', headers: { 'x-delete-token': stored.deleteToken } }));
  stored.deleted = judge(ledger, `delete of ${stored.id}`, reply, [200]);
  ledger.lastChange = Date.now();
}
