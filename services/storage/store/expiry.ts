/** Expiry: what is past its time ends, and what ended long ago is forgotten; a batch at a time, each row by one replica. */
import type { Database } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import { tellEach } from './tell.ts';

export function expiryStore(database: Database) {
  return {
    /** Ends uploads past their expiry; their files become garbage. Answers how many. */
    async expireUploads(event: DomainEvent, limit: number): Promise<number> {
      const rows = await database.run((sql) => sql`
        with ended as (
          update uploads set state = 'expired', ended_at = now()
          where id in (select id from uploads where state in ('initialized', 'assembling') and expires_at <= now() order by expires_at limit ${limit} for update skip locked)
          returning id, transfer_id, share_id, owner_id, agent_id, 'file' as target_type, gen_random_uuid() as event_id,
            jsonb_build_object('uploadId', id, 'size', size, 'lane', lane) as data
        ), files as (
          update blobs set state = 'garbage', garbage_at = now() where upload_id in (select id from ended) and state <> 'garbage'
        ), told as (${tellEach(sql, 'ended', event)})
        select id from ended`);
      return rows.length;
    },

    /** Ends transfers past their expiry and lets go of their bytes. Their shares end by themselves. Answers how many. */
    async expireTransfers(event: DomainEvent, limit: number): Promise<number> {
      const rows = await database.run((sql) => sql`
        with ended as (
          update transfers set ended_at = now(), ended_how = 'expired', bytes = null
          where id in (select id from transfers where ended_at is null and expires_at <= now() order by expires_at limit ${limit} for update skip locked)
          returning id as transfer_id, share_id, owner_id, agent_id, kind as target_type, gen_random_uuid() as event_id,
            jsonb_build_object('size', size, 'lane', lane) as data
        ), files as (
          update blobs set state = 'garbage', garbage_at = now() where transfer_id in (select transfer_id from ended) and state <> 'garbage'
        ), told as (${tellEach(sql, 'ended', event)})
        select transfer_id from ended`);
      return rows.length;
    },

    /** Forgets the parts of uploads that ended long ago. Answers how many. */
    async purgeParts(keepSeconds: number, limit: number): Promise<number> {
      const { count } = await database.run((sql) => sql`
        delete from parts where (key, part_number) in (
          select key, part_number from parts join uploads on uploads.id = parts.upload_id
          where uploads.ended_at < now() - make_interval(secs => ${keepSeconds}::int) limit ${limit})`);
      return count;
    },

    /** Forgets uploads that ended long ago and have no parts left. Answers how many. */
    async purgeUploads(keepSeconds: number, limit: number): Promise<number> {
      const { count } = await database.run((sql) => sql`
        delete from uploads where id in (
          select id from uploads where ended_at < now() - make_interval(secs => ${keepSeconds}::int)
            and not exists (select from parts where upload_id = uploads.id) order by ended_at limit ${limit})`);
      return count;
    },

    /** Forgets transfers that ended long ago. Answers how many. */
    async purgeTransfers(keepSeconds: number, limit: number): Promise<number> {
      const { count } = await database.run((sql) => sql`
        delete from transfers where id in (
          select id from transfers where ended_at < now() - make_interval(secs => ${keepSeconds}::int) order by ended_at limit ${limit})`);
      return count;
    },
  };
}
