/** A steady load of everything that the exchange does, kept up while something is broken underneath. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stored } from './ledger.ts';
import { fetchStored, issueGrant, partBytes, remove, resolve, upload, type Actors } from './steps.ts';

const workers = 16;
/** Between two flows of a worker: the load is to be steady, not to be the fault. */
const pauseMs = 15;
/** Fetches aim at the newest shares, so that several workers meet at each. */
const recent = 40;

export interface Load {
  /** Begins nothing new, and waits until everything under way has its answer. Throws when one never came. */
  stop(): Promise<void>;
}

export type Flow = (actors: Actors) => Promise<unknown>;

const uploadOpen: Flow = (actors) => upload(actors, { kind: 'open', lane: 'single', size: 4_096 });
const uploadFile: Flow = (actors) => upload(actors, { kind: 'open', lane: 'single', size: 100_000 });
const uploadParts: Flow = (actors) => upload(actors, { kind: 'open', lane: 'multipart', size: 2 * partBytes + 5_000 });
const uploadCapped: Flow = (actors) => upload(actors, { kind: 'capped', lane: 'single', size: 4_096, maxUses: 20 });
const uploadGranted: Flow = (actors) => upload(actors, { kind: 'granted', lane: 'single', size: 4_096 });

const fetchOpen: Flow = (actors) => withOne(actors, 'open', (stored) => fetchStored(actors, stored));
const fetchCapped: Flow = (actors) => withOne(actors, 'capped', (stored) => fetchStored(actors, stored));
const resolveOne: Flow = (actors) => withOne(actors, 'granted', (stored) => resolve(actors, stored));
const removeOne: Flow = (actors) => withOne(actors, 'open', (stored) => remove(actors, stored));

/** Two fetches race for each grant. */
const raceForGrant: Flow = (actors) => withOne(actors, 'granted', async (stored) => {
  const grant = await issueGrant(actors, stored);
  if (grant) await Promise.all([fetchStored(actors, stored, grant), fetchStored(actors, stored, grant)]);
});

/** What workers do, in turn; the rare ones are rare here. */
const flows: readonly Flow[] = [
  uploadOpen, fetchOpen, uploadCapped, fetchCapped, fetchCapped, uploadGranted, raceForGrant, fetchCapped, resolveOne, fetchOpen,
  uploadOpen, raceForGrant, fetchCapped, uploadFile, fetchCapped, fetchOpen, fetchCapped, removeOne, raceForGrant, fetchCapped, uploadParts, fetchCapped,
];

async function withOne({ ledger }: Actors, kind: Stored['kind'], work: (stored: Stored) => Promise<unknown>): Promise<unknown> {
  const candidates = ledger.stored.slice(-10 * recent).filter((stored) => stored.kind === kind && !stored.deleting).slice(-recent);
  const stored = candidates[Math.floor(Math.random() * candidates.length)];
  return stored && work(stored);
}

/** `more` are flows beside the usual. */
export function startLoad(actors: Actors, more: readonly Flow[] = []): Load {
  const all = [...flows, ...more];
  let running = true;
  async function work(worker: number): Promise<void> {
    for (let turn = worker * 5; running; turn += 1) {
      await all[turn % all.length]!(actors);
      await sleep(pauseMs);
    }
  }
  const working = Array.from({ length: workers }, (_each, worker) => work(worker));
  // Thrown again by stop.
  for (const each of working) each.catch(() => undefined);
  return {
    async stop() {
      running = false;
      await Promise.all(working);
    },
  };
}
