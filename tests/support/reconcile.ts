/** Holds the exchange, after a storm, to what its clients were told: each answer is a list of broken promises. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fetches, Grant, Stored } from './ledger.ts';
import { fetchStored, persist, resolve, type Actors } from './steps.ts';

/** How long a use may take to come back after the fetch that failed. */
const returnedWithinMs = 20_000;
/** A grant of these stacks lives five minutes; an older one is not asked any more. */
const grantGoodForMs = 270_000;
const width = 16;

export interface Doubts {
  /** Whether the gateway itself was killed: it may then have had no time to give back what a failed fetch spent. */
  readonly gatewayKilled: boolean;
}

/** Promise: nothing acknowledged is lost, no use is spent twice, and what failed spent nothing. */
export async function reconcile(actors: Actors, doubts: Doubts = { gatewayKilled: false }): Promise<string[]> {
  const { ledger, wire } = actors;
  const { stored, grants } = ledger;
  const broken = [
    ...await each(stored.filter(({ deleted }) => deleted), (one) => checkDeleted(actors, one)),
    ...await each(stored.filter(({ kind, deleted }) => kind === 'open' && !deleted), (one) => checkReads(actors, one)),
    ...await each(stored.filter(({ kind }) => kind === 'capped'), (one) => drain(actors, one, doubts)),
    ...await each(grants, (one) => checkGrant(actors, one, doubts)),
    // After its grants: a granted share is read by one more.
    ...await each(stored.filter(({ kind }) => kind === 'granted'), (one) => checkResolves(actors, one)),
  ];
  const late = wire.late.map((call) => `not answered in time: ${call}`);
  return [...broken, ...late, ...ledger.surprises].slice(0, 20);
}

async function each<T>(items: readonly T[], check: (item: T) => Promise<string[]>): Promise<string[]> {
  const waiting = [...items];
  const broken: string[] = [];
  await Promise.all(Array.from({ length: width }, async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) broken.push(...await check(item));
  }));
  return broken;
}

async function checkReads(actors: Actors, stored: Stored): Promise<string[]> {
  const reply = await persist('read', () => fetchStored(actors, stored));
  return reply.status === 200 ? [] : [`${stored.lane} ${stored.id} was acknowledged and answers ${reply.status}`];
}

async function checkResolves(actors: Actors, stored: Stored): Promise<string[]> {
  const reply = await persist('resolve', () => resolve(actors, stored));
  return reply.status === 200 ? [] : [`${stored.id} was acknowledged and its share answers ${reply.status}`];
}

async function checkDeleted(actors: Actors, stored: Stored): Promise<string[]> {
  const replies = [await persist('read', () => fetchStored(actors, stored)), await persist('resolve', () => resolve(actors, stored))];
  return replies.every(({ status }) => status === 404) ? [] : [`${stored.id} was deleted and answers ${replies.map(({ status }) => status).join(' and ')}`];
}

/** Fetches of which nobody knows whether they spent. */
function unknownOf({ unknown, failed }: Fetches, { gatewayKilled }: Doubts): number {
  return gatewayKilled ? unknown + failed : unknown;
}

/** Promise: maxUses is exact. Every use is fetched, and the ones that were served are counted. */
async function drain(actors: Actors, stored: Stored, doubts: Doubts): Promise<string[]> {
  const { fetches, maxUses } = stored;
  const isDrained = () => fetches.served + unknownOf(fetches, doubts) >= maxUses;
  for (const end = Date.now() + returnedWithinMs; ; await sleep(200)) {
    while ((await fetchStored(actors, stored)).status === 200 && fetches.served <= 2 * maxUses) { /* until it is refused */ }
    if (isDrained() || Date.now() > end) break;
  }
  const last = await persist('fetch', () => fetchStored(actors, stored));
  if (last.status !== 410) return [`${stored.id} is drained and answers ${last.status}`];
  if (fetches.served > maxUses) return [`${stored.id} served ${fetches.served} of ${maxUses} uses`];
  return isDrained() ? [] : [`${stored.id} lost uses: served ${fetches.served} of ${maxUses}, ${fetches.unknown} unknown, ${fetches.failed} failed`];
}

/** Promise: a grant works once, and a fetch that failed leaves it unused. */
async function checkGrant(actors: Actors, grant: Grant, doubts: Doubts): Promise<string[]> {
  const { fetches, stored } = grant;
  const isUnused = () => fetches.served === 0 && unknownOf(fetches, doubts) === 0;
  const isOld = () => Date.now() - grant.issuedAt > grantGoodForMs;
  for (const end = Date.now() + returnedWithinMs; isUnused() && !isOld() && Date.now() < end; await sleep(50)) await fetchStored(actors, stored, grant);
  if (isUnused() && !isOld()) return [`a grant for ${stored.id} was never served and does not work: ${JSON.stringify(fetches)}`];
  if (!isOld()) await fetchStored(actors, stored, grant);
  return fetches.served > 1 ? [`a grant for ${stored.id} was served ${fetches.served} times`] : [];
}
