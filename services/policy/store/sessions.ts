/** The sessions of owners. */
import type { Database, Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { Subject } from './oidc.ts';
import type { Owner } from './owners.ts';

export interface Session {
  readonly id: string;
  readonly secretHash: string;
  readonly expiresAt: Date;
  readonly owner: Owner;
}

/** A session to be opened; `ttl` in seconds. */
export interface NewSession {
  readonly id: string;
  readonly ownerId: string;
  readonly secretHash: string;
  readonly ttl: number;
}

/** A session that the same browser held before, and the event of its end; whose it was, the statement finds out. */
export interface ReplacedSession {
  readonly id: string;
  readonly secretHash: string;
  readonly event: DomainEvent;
}

/** What whoever signs in has proven. */
type Proof = { readonly passwordHash: string } | Subject;

export function sessionsStore(database: Database) {
  return {
    /**
     * Opens a session for whoever proved the password with this hash, or to be this subject, and ends the one that it replaces.
     * Answers when it ends, or undefined when the owner has another password by now.
     */
    async openSession(session: NewSession, proof: Proof, event: DomainEvent, replaced?: ReplacedSession): Promise<Date | undefined> {
      const rows = await database.run((sql) => sql<{ expiresAt: Date }[]>`
        with opened as (
          insert into sessions (id, owner_id, secret_hash, epoch, expires_at)
          select ${session.id}, o.id, ${session.secretHash}, o.session_epoch, now() + make_interval(secs => ${session.ttl})
          from owners o where o.id = ${session.ownerId} and ${isProven(sql, proof)}
          returning expires_at
        ), told as (
          insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from opened
        )${replaced ? endReplaced(sql, replaced) : sql``}
        select expires_at as "expiresAt" from opened`);
      return rows[0]?.expiresAt;
    },

    /** A session that has neither ended nor expired. */
    async findSession(id: string): Promise<Session | undefined> {
      const rows = await database.run((sql) => sql<Session[]>`
        select s.id, s.secret_hash as "secretHash", s.expires_at as "expiresAt",
               json_build_object('id', o.id, 'email', o.email, 'admin', o.admin) as owner
        from sessions s join owners o on o.id = s.owner_id
        where s.id = ${id} and s.ended_at is null and s.expires_at > now() and s.epoch = o.session_epoch`);
      return rows[0];
    },

    async endSession(id: string, event: DomainEvent): Promise<void> {
      await database.run((sql) => sql`
        with ended as (
          update sessions set ended_at = now() where id = ${id} and ended_at is null returning id
        )
        insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from ended`);
    },

    /** Ends every session of an owner, also one that is being opened at this moment. Answers how many there were. */
    async endSessions(ownerId: string, event: DomainEvent): Promise<number> {
      const rows = await database.run((sql) => sql<{ ended: number }[]>`
        with owner as (
          update owners set session_epoch = session_epoch + 1 where id = ${ownerId} returning id
        ), ended as (${endAll(sql, 'owner')}), told as (
          insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from owner
        )
        select count(*)::int as ended from ended`);
      return rows[0]!.ended;
    },

    /**
     * Replaces the password whose hash was proven, ends every session and opens one for whoever did it. Answers when that ends, or
     * undefined when the password or the session that asked is not the present one any more.
     */
    async changePassword(
      change: { from: string; to: string; askedBy: string; session: NewSession },
      event: DomainEvent,
    ): Promise<Date | undefined> {
      const { from, to, askedBy, session } = change;
      const rows = await database.run((sql) => sql<{ expiresAt: Date }[]>`
        with owner as (
          update owners o set password_hash = ${to}, session_epoch = o.session_epoch + 1
          where o.id = ${session.ownerId} and o.password_hash = ${from}
            and exists (select from sessions s where s.id = ${askedBy} and s.ended_at is null and s.epoch = o.session_epoch)
          returning o.id, o.session_epoch
        ), ended as (${endAll(sql, 'owner')}), opened as (
          insert into sessions (id, owner_id, secret_hash, epoch, expires_at)
          select ${session.id}, id, ${session.secretHash}, session_epoch, now() + make_interval(secs => ${session.ttl}) from owner
          returning expires_at
        ), told as (
          insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from opened
        )
        select expires_at as "expiresAt" from opened`);
      return rows[0]?.expiresAt;
    },

    async purgeSessions(): Promise<void> {
      await database.run((sql) => sql`delete from sessions where expires_at < now() - interval '1 day'`);
    },
  };
}

const isProven = (sql: Sql, proof: Proof) => ('passwordHash' in proof
  ? sql`o.password_hash = ${proof.passwordHash}`
  : sql`o.oidc_issuer = ${proof.issuer} and o.oidc_subject = ${proof.subject}`);

const endAll = (sql: Sql, owner: string) => sql`
  update sessions s set ended_at = now() from ${sql(owner)} o where s.owner_id = o.id and s.ended_at is null and s.expires_at > now() returning s.id`;

/** The part of a statement that ends the session which the opened one replaces. */
function endReplaced(sql: Sql, { id, secretHash, event }: ReplacedSession) {
  return sql`, replaced as (
    update sessions set ended_at = now()
    where id = ${id} and secret_hash = ${secretHash} and ended_at is null and expires_at > now() and exists (select from opened)
    returning owner_id
  ), told_replaced as (
    insert into outbox (id, event)
    select ${event.id}::uuid, ${sql.json(event as never)}::jsonb
      || jsonb_build_object('ownerId', owner_id, 'actor', jsonb_build_object('type', 'owner', 'id', owner_id)) from replaced
  )`;
}
