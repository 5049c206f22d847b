/** Owners of the OpenID Connect provider, and the sign-ins that came back from there. */
import type { Database } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { Owner } from './owners.ts';

/** Who somebody is at a provider. */
export interface Subject {
  readonly issuer: string;
  readonly subject: string;
}

export function oidcStore(database: Database) {
  return {
    async findOwnerBySubject({ issuer, subject }: Subject): Promise<Owner | undefined> {
      const rows = await database.run((sql) => sql<Owner[]>`
        select id, email, admin from owners where oidc_issuer = ${issuer} and oidc_subject = ${subject}`);
      return rows[0];
    },

    /** Makes the owner of a first sign-in. Answers false when the e-mail or the subject belongs to one. */
    async createOwnerOfSubject(owner: Owner & Subject, event: DomainEvent): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with made as (
          insert into owners (id, email, admin, oidc_issuer, oidc_subject)
          values (${owner.id}, ${owner.email}, ${owner.admin}, ${owner.issuer}, ${owner.subject})
          on conflict do nothing
          returning id
        ), told as (
          insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from made
        )
        select id from made`);
      return rows.length > 0;
    },

    /** Notes that a sign-in came back. Answers false when it did before. */
    async claimReturn(flow: string): Promise<boolean> {
      const rows = await database.run((sql) => sql`insert into oidc_returns (flow) values (${flow}) on conflict do nothing returning flow`);
      return rows.length > 0;
    },

    /** A flow is refused by its age long before. */
    async purgeReturns(): Promise<void> {
      await database.run((sql) => sql`delete from oidc_returns where returned_at < now() - interval '1 day'`);
    },
  };
}
