-- Uploads that a sender goes on with over many requests. Their bytes are an append upload of the same id; here is what becomes of them.

create table resumables (
  id text primary key,
  transfer_id text not null,
  share_id text not null,
  plan_id text not null constraint resumables_plan unique,
  owner_id text,
  agent_id text,
  filename text not null,
  mime_type text not null,
  -- Absent until the sender says it.
  size bigint,
  release jsonb not null,
  -- The sender's own words, repeated to it.
  metadata text,
  state text not null default 'open' check (state in ('open', 'completed', 'aborted', 'expired')),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz
);
create index resumables_to_expire on resumables (expires_at) where state = 'open';
create index resumables_to_purge on resumables (ended_at) where ended_at is not null;
