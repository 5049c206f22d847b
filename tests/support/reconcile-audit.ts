/** Counts what happened against what is recorded: every change has its event, once. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, type FaultStack } from './fault-stack.ts';
import type { Ledger } from './ledger.ts';
import { persist, type Actors } from './steps.ts';

interface Event {
  readonly id: string;
  readonly eventType: string;
  readonly targetId: string | null;
  readonly outcome: string;
  readonly data: Record<string, unknown>;
}

/** Changes of one kind as the tables hold them, and the events that record them. `once`: which change an event is about. */
interface Account {
  readonly eventType: string;
  readonly changes: string;
  readonly outcome?: string;
  readonly once: (event: Event) => unknown;
}

const byTarget = (event: Event) => event.targetId;
/** A pipe is an upload without an id of its own. */
const byUpload = (event: Event) => event.data['uploadId'] ?? event.targetId;
const pipes = 'select transfer_id as id from storage.appends where transfer_id is not null';
const byData = (field: string) => (event: Event) => event.data[field];

const accounts: readonly Account[] = [
  { eventType: 'transfer.stored', changes: `select id from storage.transfers where kind = 'file' and folder_id is null union all ${pipes} and state = 'complete'`, once: byTarget },
  { eventType: 'folder.created', changes: `select id from storage.transfers where kind = 'folder'`, once: byTarget },
  { eventType: 'folder.file_ready', changes: 'select id from storage.folder_files where ready_at is not null', once: byData('fileId') },
  { eventType: 'transfer.deleted', changes: `select id from storage.transfers where ended_how = 'deleted'`, once: byTarget },
  { eventType: 'upload.initialized', changes: `select id from storage.uploads union all ${pipes}`, once: byUpload },
  { eventType: 'upload.completed', changes: `select id from storage.uploads where state in ('completing', 'completed') and folder_id is null union all ${pipes} and state = 'complete'`, once: byUpload },
  { eventType: 'share.created', changes: 'select id from policy.shares', once: byTarget },
  { eventType: 'share.ended', changes: 'select id from policy.shares where ended_at is not null', once: byTarget },
  { eventType: 'transfer.fetched', outcome: 'error', changes: 'select id from policy.fetches where share_id is not null and returned_at is not null', once: byData('fetchId') },
  { eventType: 'grant.redeemed', changes: 'select id from policy.fetches where grant_id is not null', once: byData('fetchId') },
];

/** Promise: changes = audit rows; no doubles, no half-made share, nothing left in an outbox. */
export async function reconcileAudit(actors: Actors, stack: FaultStack): Promise<string[]> {
  const left = await eventually(() => countOutboxes(stack), (count) => count === 0, 60_000);
  const events = await walkAudit(actors);
  const broken = await Promise.all(accounts.map((account) => compare(account, events, stack)));
  return [
    ...(left > 0 ? [`${left} events are still in an outbox`] : []),
    ...broken.flat(),
    ...await compareSpending(events, stack),
    ...await compareHalves(stack),
    ...compareAcknowledged(events, actors.ledger),
  ].slice(0, 20);
}

async function countOutboxes(stack: FaultStack): Promise<number> {
  const [row] = await stack.query<{ count: number }>('select ((select count(*) from policy.outbox) + (select count(*) from storage.outbox))::int as count');
  return row!.count;
}

/** Every event of the owner, page by page. */
async function walkAudit({ wire, session, ledger }: Actors): Promise<Event[]> {
  const events: Event[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const path: string = `/api/audit?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const page = await persist('audit', () => wire.send(path, { bearer: session }));
    if (page.status !== 200) throw new Error(`the audit record answers ${page.status}`);
    events.push(...page.json.events as Event[]);
    cursor = page.json.nextCursor as string | null;
  }
  if (new Set(events.map(({ id }) => id)).size !== events.length) ledger.surprises.push('the audit walk met an event twice');
  return events;
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => unknown): Map<unknown, number> {
  const counts = new Map<unknown, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}

async function compare({ eventType, outcome, changes, once }: Account, events: readonly Event[], stack: FaultStack): Promise<string[]> {
  const ids = (await stack.query<{ id: string }>(changes)).map(({ id }) => id);
  const recorded = countBy(events.filter((event) => event.eventType === eventType && (!outcome || event.outcome === outcome)), once);
  const missing = ids.filter((id) => !recorded.has(id));
  const doubled = [...recorded].filter(([, count]) => count > 1);
  const changed = new Set<unknown>(ids);
  const invented = [...recorded.keys()].filter((id) => !changed.has(id));
  return [
    ...(missing.length > 0 ? [`${eventType}: ${missing.length} of ${ids.length} changes are not recorded, such as ${missing[0]}`] : []),
    ...(doubled.length > 0 ? [`${eventType}: ${doubled.length} changes are recorded more than once, such as ${doubled[0]}`] : []),
    ...(invented.length > 0 ? [`${eventType}: ${invented.length} events record no change, such as ${invented[0]}`] : []),
  ];
}

/** Fetches that spent something are told durably, the others are not: each spent one has its event, and uses are their sum. */
async function compareSpending(events: readonly Event[], stack: FaultStack): Promise<string[]> {
  const spent = await stack.query<{ id: string }>('select id from policy.fetches where share_id is not null');
  const fetched = countBy(events.filter((event) => event.eventType === 'transfer.fetched' && event.outcome === 'allowed'), byData('fetchId'));
  const wrong = spent.filter(({ id }) => fetched.get(id) !== 1);
  const miscounted = await stack.query<{ id: string }>(`
    select id from policy.shares where (max_uses is not null or mode = 'agent')
      and uses <> (select count(*) from policy.fetches where share_id = shares.id and returned_at is null)`);
  return [
    ...(wrong.length > 0 ? [`transfer.fetched: ${wrong.length} of ${spent.length} spent uses are not recorded once, such as ${wrong[0]!.id}`] : []),
    ...miscounted.map(({ id }) => `${id} counts other uses than were spent`),
  ];
}

/** Promise: no share without its transfer, no transfer without its share, no deleted transfer with a live share. */
async function compareHalves(stack: FaultStack): Promise<string[]> {
  const halves = await stack.query<{ id: string }>(`
    select coalesce(t.id, s.target_id) as id from (select * from storage.transfers where folder_id is null) t full join policy.shares s on s.target_id = t.id and s.id = t.share_id
    where t.id is null or s.id is null or (t.ended_at is null) <> (s.ended_at is null)`);
  return halves.map(({ id }) => `${id} is half-made`);
}

/** What a client was told must be there, whatever the tables say. */
function compareAcknowledged(events: readonly Event[], { stored, grants }: Ledger): string[] {
  const counts = countBy(events, ({ eventType, targetId }) => `${eventType} ${targetId}`);
  const due = [
    ...stored.flatMap(({ id, shareId }) => [`transfer.stored ${id}`, `share.created ${shareId}`]),
    ...stored.filter(({ deleted }) => deleted).flatMap(({ id, shareId }) => [`transfer.deleted ${id}`, `share.ended ${shareId}`]),
    ...grants.map(({ token }) => `grant.issued ${JSON.parse(Buffer.from(token.slice('agrt_'.length).split('.')[0]!, 'base64url').toString()).grantId}`),
  ];
  return due.filter((one) => counts.get(one) !== 1).map((one) => `${one} was acknowledged and is recorded ${counts.get(one) ?? 0} times`);
}

/** Files that no live transfer needs and files that one misses; both lists are empty once the sweeps have been. */
export async function compareBlobs(stack: FaultStack): Promise<{ orphans: string[]; missing: string[] }> {
  return eventually(async () => {
    const rows = await stack.query<{ key: string }>(`select distinct piece->>'key' as key from storage.transfers, jsonb_array_elements(segments) piece where ended_at is null`);
    const needed = new Set(rows.map(({ key }) => key));
    const files = (await readdir(join(stack.dataDir, 'blobs'), { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).map(({ name }) => name);
    return { orphans: files.filter((name) => !needed.has(name)), missing: [...needed].filter((key) => !files.includes(key)) };
  }, ({ orphans, missing }) => orphans.length + missing.length === 0, 60_000);
}
