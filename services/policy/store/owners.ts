/** Owners and their sessions. */
import type { Database } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';

export interface Owner {
  readonly id: string;
  readonly email: string;
  readonly admin: boolean;
}

export interface Session {
  readonly id: string;
  readonly secretHash: string;
  readonly expiresAt: Date;
  readonly owner: Owner;
}

export function ownersStore(database: Database) {
  return {
    /** Makes the first owner when there is none. Answers whether it was made. */
    async createFirstOwner(owner: { id: string; email: string; passwordHash: string }): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        insert into owners (id, email, password_hash, admin)
        select ${owner.id}::text, ${owner.email}::text, ${owner.passwordHash}::text, true
        where not exists (select from owners)
        on conflict do nothing
        returning id`);
      return rows.length > 0;
    },

    /** Makes an owner. Answers false when the e-mail belongs to one. */
    async createOwner(owner: Owner & { passwordHash: string }, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with made as (
          insert into owners (id, email, password_hash, admin) values (${owner.id}, ${owner.email}, ${owner.passwordHash}, ${owner.admin})
          on conflict do nothing
          returning id
        ), told as (
          insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from made
        )
        select id from made`);
      return rows.length > 0;
    },

    async hasOwner(): Promise<boolean> {
      const rows = await database.run((sql) => sql`select from owners limit 1`);
      return rows.length > 0;
    },

    async findOwnerByEmail(email: string): Promise<(Owner & { passwordHash: string }) | undefined> {
      const rows = await database.run((sql) => sql<(Owner & { passwordHash: string })[]>`
        select id, email, admin, password_hash as "passwordHash" from owners where lower(email) = lower(${email})`);
      return rows[0];
    },

    /** Opens a session. `ttl` in seconds; answers when it ends. */
    async openSession(session: { id: string; ownerId: string; secretHash: string; ttl: number }, event: DomainEvent): Promise<Date> {
      const rows = await database.run((sql) => sql<{ expiresAt: Date }[]>`
        with opened as (
          insert into sessions (id, owner_id, secret_hash, expires_at)
          values (${session.id}, ${session.ownerId}, ${session.secretHash}, now() + make_interval(secs => ${session.ttl}))
          returning expires_at
        ), told as (
          insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from opened
        )
        select expires_at as "expiresAt" from opened`);
      return rows[0]!.expiresAt;
    },

    /** A session that has neither ended nor expired. */
    async findSession(id: string): Promise<Session | undefined> {
      const rows = await database.run((sql) => sql<Session[]>`
        select s.id, s.secret_hash as "secretHash", s.expires_at as "expiresAt",
               json_build_object('id', o.id, 'email', o.email, 'admin', o.admin) as owner
        from sessions s join owners o on o.id = s.owner_id
        where s.id = ${id} and s.ended_at is null and s.expires_at > now()`);
      return rows[0];
    },

    async endSession(id: string, event: DomainEvent): Promise<void> {
      await database.run((sql) => sql`
        with ended as (
          update sessions set ended_at = now() where id = ${id} and ended_at is null returning id
        )
        insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from ended`);
    },

    async purgeSessions(): Promise<void> {
      await database.run((sql) => sql`delete from sessions where expires_at < now() - interval '1 day'`);
    },
  };
}
