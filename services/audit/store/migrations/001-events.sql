-- The audit record. Rows are added and never changed.
-- occurred_at has the milliseconds of the event, so that a cursor can name the stored value exactly.
create table events (
  id uuid primary key,
  occurred_at timestamptz(3) not null,
  event_type text not null,
  owner_id text,
  agent_id text,
  target_type text,
  target_id text,
  share_id text,
  event jsonb not null,
  recorded_at timestamptz not null default now()
);

-- Every query is one owner's, newest first; events without an owner are shown to nobody and need no index.
create index events_owner on events (owner_id, occurred_at desc, id desc) where owner_id is not null;
create index events_type on events (owner_id, event_type, occurred_at desc, id desc) where owner_id is not null;
create index events_agent on events (owner_id, agent_id, occurred_at desc, id desc) where owner_id is not null and agent_id is not null;
create index events_target on events (owner_id, target_id, occurred_at desc, id desc) where owner_id is not null and target_id is not null;
create index events_share on events (owner_id, share_id, occurred_at desc, id desc) where owner_id is not null and share_id is not null;
create index events_target_type on events (owner_id, target_type, occurred_at desc, id desc) where owner_id is not null and target_type is not null;
