/** Standing permissions against a real PostgreSQL. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../shared/db.ts';
import { eventOfService } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import { permissionsStore, type NewPermission } from './permissions.ts';

let scratch: ScratchDatabase;
let database: Database;
let store: ReturnType<typeof permissionsStore>;

beforeAll(async () => {
  scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url));
  database = scratch.database;
  store = permissionsStore(database);
  await database.run((sql) => sql`insert into owners (id, email, password_hash) values ('own_1', 'a@b', ''), ('own_2', 'c@d', '')`);
  await database.run((sql) => sql`insert into agents (agent_id, owner_id) values ('mine', 'own_1'), ('theirs', 'own_2')`);
});
afterAll(() => scratch.drop());

const event = (eventType: 'standing_permission.created' | 'standing_permission.revoked') =>
  eventOfService('policy', Date.now(), { eventType, targetType: 'standing_permission', targetId: null });
const audit = { createdBy: { type: 'owner' as const, id: 'own_1' }, createdByRequestId: 'req_1' };
const revokedAudit = { revokedBy: { type: 'owner' as const, id: 'own_1' }, revokedByRequestId: 'req_2' };
const make = (facts: Partial<NewPermission> = {}) => store.createPermission({
  id: newId('permission'), ownerId: 'own_1', fromAgentId: 'mine', toAgentId: 'anyone', scopes: ['share.resolve'],
  constraints: { allowedPolicyModes: ['agent'] }, expiresAt: null, audit, ...facts,
}, event('standing_permission.created'));

async function events(id: string): Promise<Record<string, unknown>[]> {
  const rows = await database.run((sql) => sql<{ event: Record<string, unknown> }[]>`select event from outbox where id = ${id}`);
  return rows.map((row) => row.event);
}

test('a permission comes from an agent of its owner only', async () => {
  expect(await make()).toMatchObject({ from: { agentId: 'mine' }, to: { agentId: 'anyone' }, version: 1, audit });
  expect(await make({ fromAgentId: 'theirs' })).toBeUndefined();
  expect(await make({ fromAgentId: 'nobody' })).toBeUndefined();
});

test('what is not set is left out of the record', async () => {
  const made = (await make())!;
  expect(made).not.toHaveProperty('expiresAt');
  expect(made).not.toHaveProperty('revokedAt');
  const expiresAt = new Date('2100-01-01T00:00:00.123Z');
  expect((await make({ expiresAt }))!.expiresAt).toBe('2100-01-01T00:00:00.123Z');
});

test('many revocations at once are one, told once, by its owner only', async () => {
  const { id } = (await make())!;
  await store.revokePermission(id, 'own_2', revokedAudit, event('standing_permission.revoked'));
  expect(await store.findPermission(id, 'own_1')).toMatchObject({ version: 1 });
  const told = Array.from({ length: 10 }, () => event('standing_permission.revoked'));
  await Promise.all(told.map((one) => store.revokePermission(id, 'own_1', revokedAudit, one)));
  expect((await Promise.all(told.map((one) => events(one.id)))).flat()).toEqual([expect.objectContaining({ agentId: 'mine', data: { toAgentId: 'anyone' } })]);
  expect(await store.findPermission(id, 'own_1')).toMatchObject({ version: 2, revokedAt: expect.any(String), audit: { ...audit, ...revokedAudit } });
});

test('an owner finds and lists its own, newest first', async () => {
  const older = (await make())!;
  const newer = (await make())!;
  expect(await store.findPermission(older.id, 'own_2')).toBeUndefined();
  expect(await store.listPermissions('own_2', 200)).toEqual([]);
  expect((await store.listPermissions('own_1', 2)).map(({ id }) => id)).toEqual([newer.id, older.id]);
});
