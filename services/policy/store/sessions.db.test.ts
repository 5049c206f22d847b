/** Sessions against a real PostgreSQL: none outlives the password or the sign-out that ended them all, however they race. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventOfService, type EventType } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { ownersStore } from './owners.ts';
import { sessionsStore } from './sessions.ts';

let scratch: ScratchDatabase;
let store: ReturnType<typeof sessionsStore> & ReturnType<typeof ownersStore>;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  store = { ...sessionsStore(scratch.database), ...ownersStore(scratch.database) };
});
afterAll(() => scratch.drop());

const event = (eventType: EventType) => eventOfService('policy', Date.now(), { eventType, targetType: null, targetId: null });

async function makeOwner() {
  const owner = { id: newId('owner'), email: `${randomUUID()}@example.com`, admin: false, passwordHash: 'first' };
  await store.createOwner(owner, event('owner.created'));
  return owner.id;
}

async function open(ownerId: string, passwordHash = 'first') {
  const id = randomUUID();
  const expiresAt = await store.openSession({ id, ownerId, secretHash: `hash of ${id}`, ttl: 600 }, { passwordHash }, event('owner.signed_in'));
  return expiresAt && id;
}

const change = (ownerId: string, askedBy: string, from: string, to: string, id: string = randomUUID()) =>
  store.changePassword({ from, to, askedBy, session: { id, ownerId, secretHash: 'x', ttl: 600 } }, event('owner.password_changed'));

test('no session is opened by a password that was changed', async () => {
  const owner = await makeOwner();
  const session = await open(owner);
  expect(await change(owner, session!, 'first', 'second')).toBeInstanceOf(Date);
  expect(await open(owner, 'first')).toBeUndefined();
  expect(await open(owner, 'second')).toBeDefined();
});

test('a change of password ends every session but the one it opens', async () => {
  const owner = await makeOwner();
  const [asked, other] = [await open(owner), await open(owner)];
  const opened = randomUUID();
  await change(owner, asked!, 'first', 'second', opened);
  expect([await store.findSession(asked!), await store.findSession(other!)]).toEqual([undefined, undefined]);
  expect((await store.findSession(opened))?.owner.id).toBe(owner);
});

test('of changes that race from one session, one happens', async () => {
  const owner = await makeOwner();
  const asked = await open(owner);
  const done = await Promise.all(Array.from({ length: 20 }, (_unused, index) => change(owner, asked!, 'first', `second ${index}`)));
  expect(done.filter(Boolean)).toHaveLength(1);
});

test('a session that ended changes no password', async () => {
  const owner = await makeOwner();
  const asked = await open(owner);
  expect(await store.endSessions(owner, event('owner.signed_out'))).toBe(1);
  expect(await change(owner, asked!, 'first', 'second')).toBeUndefined();
  expect((await store.findOwner(owner))?.passwordHash).toBe('first');
});

test('a sign-in that races a change of password opens nothing that lives on by the old one', async () => {
  for (let round = 0; round < 20; round += 1) {
    const owner = await makeOwner();
    const asked = await open(owner);
    const [changed, ...raced] = await Promise.all([change(owner, asked!, 'first', 'second'), ...Array.from({ length: 6 }, () => open(owner))]);
    expect(changed).toBeInstanceOf(Date);
    for (const id of raced) if (id) expect(await store.findSession(id)).toBeUndefined();
  }
});

test('signing out everywhere ends the sessions of one owner, says how many, and leaves the others', async () => {
  const [owner, other] = [await makeOwner(), await makeOwner()];
  const mine = [await open(owner), await open(owner), await open(owner)];
  const theirs = await open(other);
  await store.endSession(mine[0]!, event('owner.signed_out'));
  expect(await store.endSessions(owner, event('owner.signed_out'))).toBe(2);
  for (const id of mine) expect(await store.findSession(id!)).toBeUndefined();
  expect(await store.findSession(theirs!)).toBeDefined();
  expect(await store.endSessions(owner, event('owner.signed_out'))).toBe(0);
  expect(await store.findSession((await open(owner))!)).toBeDefined();
});

test('a session is replaced only by whoever knows its secret, and its own owner is told', async () => {
  const [owner, other] = [await makeOwner(), await makeOwner()];
  const id = await open(owner);
  const told = event('owner.signed_out');
  const signIn = (secretHash: string) => store.openSession({ id: randomUUID(), ownerId: other, secretHash: 'y', ttl: 600 }, { passwordHash: 'first' }, event('owner.signed_in'), { id: id!, secretHash, event: told });
  await signIn('another');
  expect(await store.findSession(id!)).toBeDefined();
  await signIn(`hash of ${id}`);
  expect(await store.findSession(id!)).toBeUndefined();
  const rows = await scratch.database.run((sql) => sql<{ event: object }[]>`select event from outbox where id = ${told.id}`);
  expect(rows[0]?.event).toMatchObject({ ownerId: owner, actor: { type: 'owner', id: owner }, eventType: 'owner.signed_out' });
});
