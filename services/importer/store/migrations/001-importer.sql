-- Imports under way and done. Of a URL only its host is kept: the rest may hold secrets. Tables are in the role's own schema.

create table outbox (
  id uuid primary key,
  event jsonb not null,
  attempts int not null default 0,
  send_after timestamptz not null default now()
);
create index outbox_due on outbox (send_after);

-- One row for each plan. Whoever runs it holds its lease and renews it; a lease past its time belongs to nobody.
-- `attempt` tells a run from the one before it, which may still believe that it runs.
create table imports (
  plan_id text primary key,
  transfer_id text not null,
  share_id text not null,
  owner_id text,
  agent_id text,
  host text not null,
  state text not null default 'running' check (state in ('running', 'completed', 'failed')),
  attempt int not null default 1,
  lease_until timestamptz not null,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  check ((state = 'running') = (ended_at is null))
);
create index imports_to_settle on imports (lease_until) where state = 'running';
create index imports_to_purge on imports (ended_at) where ended_at is not null;
