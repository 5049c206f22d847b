/** Owners. */
import type { Database } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';

export interface Owner {
  readonly id: string;
  readonly email: string;
  readonly admin: boolean;
}

export interface OwnerWithPassword extends Owner {
  /** Null for who signs in at the OpenID Connect provider. */
  readonly passwordHash: string | null;
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

    async findOwnerByEmail(email: string): Promise<OwnerWithPassword | undefined> {
      const rows = await database.run((sql) => sql<OwnerWithPassword[]>`
        select id, email, admin, password_hash as "passwordHash" from owners where lower(email) = lower(${email})`);
      return rows[0];
    },

    async findOwner(id: string): Promise<OwnerWithPassword | undefined> {
      const rows = await database.run((sql) => sql<OwnerWithPassword[]>`
        select id, email, admin, password_hash as "passwordHash" from owners where id = ${id}`);
      return rows[0];
    },
  };
}
