import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { eventOfService, type EventType } from '../../../shared/events.ts';
import { importsStore, type Store } from './imports.ts';

let scratch: ScratchDatabase;
let store: Store;
beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  store = importsStore(scratch.database);
});
afterAll(() => scratch.drop());

const newImport = () => ({ planId: `pln_${randomUUID()}`, transferId: 'trf_a', shareId: 'shr_a', ownerId: 'own_a', agentId: null, host: 'a.test' });
const event = (eventType: EventType) => eventOfService('importer', 0, { eventType, targetType: 'file', targetId: 'trf_a' });
const eventCount = async () => (await scratch.database.run((sql) => sql`select id from outbox`)).length;

test('of many that claim an import at once, one runs it', async () => {
  const made = newImport();
  const claims = await Promise.all(Array.from({ length: 20 }, () => store.claimImport(made, 60)));
  expect(claims.filter((attempt) => attempt !== undefined)).toEqual([1]);
  expect(await store.findState(made.planId)).toBe('running');
});

test('a completed import is never run again, a failed one is', async () => {
  const [done, failed] = [newImport(), newImport()];
  for (const made of [done, failed]) await store.claimImport(made, 60);
  await store.endImport({ planId: done.planId, attempt: 1 }, 'completed', event('import.completed'));
  await store.endImport({ planId: failed.planId, attempt: 1 }, 'failed', event('import.failed'));
  expect([await store.claimImport(done, 60), await store.claimImport(failed, 60)]).toEqual([undefined, 2]);
});

test('a run that lost its lease renews nothing, ends nothing and tells nothing', async () => {
  const made = newImport();
  await store.claimImport(made, 0);
  await setTimeout(5);
  expect(await store.findState(made.planId)).toBe('abandoned');
  expect((await store.findAbandoned(100)).map(({ planId }) => planId)).toContain(made.planId);
  expect(await store.claimImport(made, 60)).toBe(2);
  const before = await eventCount();
  expect(await store.renewLease({ planId: made.planId, attempt: 1 }, 60)).toBe(false);
  await store.endImport({ planId: made.planId, attempt: 1 }, 'failed', event('import.failed'));
  expect([await store.findState(made.planId), await eventCount()]).toEqual(['running', before]);
  expect(await store.renewLease({ planId: made.planId, attempt: 2 }, 60)).toBe(true);
});

test('an import ends once, with one event', async () => {
  const made = newImport();
  await store.claimImport(made, 60);
  const before = await eventCount();
  await Promise.all(Array.from({ length: 10 }, () => store.endImport({ planId: made.planId, attempt: 1 }, 'completed', event('import.completed'))));
  expect(await eventCount()).toBe(before + 1);
});

test('ended imports are forgotten after their time, running ones are not', async () => {
  const [ended, running] = [newImport(), newImport()];
  for (const made of [ended, running]) await store.claimImport(made, 60);
  await store.endImport({ planId: ended.planId, attempt: 1 }, 'failed', event('import.failed'));
  await store.purgeImports(3_600);
  expect(await store.findState(ended.planId)).toBe('failed');
  await store.purgeImports(0);
  expect([await store.findState(ended.planId), await store.findState(running.planId)]).toEqual([undefined, 'running']);
});
