-- The audit record, a partition a month. Rows are added and never changed; they go with their whole partition.
-- occurred_at has the milliseconds of the event, so that a cursor can name the stored value exactly.
create table events (
  id uuid not null,
  occurred_at timestamptz(3) not null,
  event_type text not null,
  owner_id text,
  agent_id text,
  target_type text,
  target_id text,
  share_id text,
  event jsonb not null,
  recorded_at timestamptz not null default now(),
  -- An event's time never changes, so this is the event's id alone. The id comes first: no query can mistake this for an index by time.
  primary key (id, occurred_at)
) partition by range (occurred_at);

-- Every query is one owner's, newest first; events without an owner are shown to nobody and need no index.
create index events_owner on events (owner_id, occurred_at desc, id desc) where owner_id is not null;
create index events_type on events (owner_id, event_type, occurred_at desc, id desc) where owner_id is not null;
create index events_agent on events (owner_id, agent_id, occurred_at desc, id desc) where owner_id is not null and agent_id is not null;
create index events_target_type on events (owner_id, target_type, occurred_at desc, id desc) where owner_id is not null and target_type is not null;
create index events_target on events (owner_id, target_id, occurred_at desc, id desc) where owner_id is not null and target_id is not null;
create index events_share on events (owner_id, share_id, occurred_at desc, id desc) where owner_id is not null and share_id is not null;
-- Two filters that each match millions may have nothing in common: pairs have indexes of their own.
create index events_type_target_type on events (owner_id, event_type, target_type, occurred_at desc, id desc) where owner_id is not null and target_type is not null;
create index events_agent_type on events (owner_id, agent_id, event_type, occurred_at desc, id desc) where owner_id is not null and agent_id is not null;
create index events_agent_target_type on events (owner_id, agent_id, target_type, occurred_at desc, id desc) where owner_id is not null and agent_id is not null and target_type is not null;
create index events_target_event on events (owner_id, target_id, event_type, occurred_at desc, id desc) where owner_id is not null and target_id is not null;
create index events_target_agent on events (owner_id, target_id, agent_id, occurred_at desc, id desc) where owner_id is not null and target_id is not null and agent_id is not null;
create index events_share_type on events (owner_id, share_id, event_type, occurred_at desc, id desc) where owner_id is not null and share_id is not null;
create index events_share_agent on events (owner_id, share_id, agent_id, occurred_at desc, id desc) where owner_id is not null and share_id is not null and agent_id is not null;
create index events_share_target_type on events (owner_id, share_id, target_type, occurred_at desc, id desc) where owner_id is not null and share_id is not null and target_type is not null;

-- Asked of the tables of the catalog, by a snapshot of now: a name that was looked up before a wait may be remembered as absent.
create function has_event_partition(partition text) returns boolean language plpgsql as $$
begin
  return exists (select from pg_inherits join pg_class on pg_class.oid = inhrelid where inhparent = 'events'::regclass and relname = partition);
end $$;

-- Makes the partition of a time's month (UTC). Answers whether it was absent. Whoever makes or drops one waits for the others who do;
-- attaching, unlike creating in place, holds up neither readers nor writers.
create function make_event_partition(at timestamptz) returns boolean language plpgsql as $$
declare
  month timestamp := date_trunc('month', at at time zone 'UTC');
  partition text := 'events_' || to_char(month, 'YYYY_MM');
begin
  if has_event_partition(partition) then return false; end if;
  perform pg_advisory_xact_lock(hashtext(current_schema()), hashtext('event partitions'));
  if has_event_partition(partition) then return false; end if;
  execute format('create table %I (like events including defaults)', partition);
  execute format('alter table events attach partition %I for values from (%L) to (%L)',
    partition, month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
  return true;
end $$;

-- Drops the partitions that end at a time or before it, and answers their names. A drop holds up everybody for a moment,
-- so it gives up when it does not get its turn soon.
create function drop_event_partitions(before timestamptz) returns setof text language plpgsql set lock_timeout = '1s' as $$
declare
  partition text;
begin
  perform pg_advisory_xact_lock(hashtext(current_schema()), hashtext('event partitions'));
  for partition in
    with own as materialized (select relname from pg_inherits join pg_class on pg_class.oid = inhrelid where inhparent = 'events'::regclass)
    select relname from own where (to_date(right(relname, 7), 'YYYY_MM') + interval '1 month') at time zone 'UTC' <= before
    order by relname
  loop
    execute format('drop table %I', partition);
    return next partition;
  end loop;
end $$;
