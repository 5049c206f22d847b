-- The policy service's own schema: who may do what. It never holds bytes, and no token that works.

create table owners (
  id text primary key,
  email text not null,
  password_hash text not null,
  admin boolean not null default false,
  created_at timestamptz not null default now()
);
create unique index owners_email on owners (lower(email));

create table sessions (
  id text primary key,
  owner_id text not null references owners,
  secret_hash text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz
);
create index sessions_expiry on sessions (expires_at);

create table agents (
  agent_id text primary key,
  owner_id text not null references owners,
  created_at timestamptz not null default now()
);

create table agent_keys (
  key_id text primary key,
  agent_id text not null references agents,
  owner_id text not null references owners,
  name text,
  secret_hash text not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz
);
create index agent_keys_by_owner on agent_keys (owner_id, created_at desc);

create table shares (
  id text primary key,
  target_type text not null,
  target_id text not null,
  filename text not null,
  mime_type text not null,
  size bigint not null,
  mode text not null,
  allowed_agent_ids text[] not null,
  max_uses bigint,
  -- Counted where it decides something: on agent shares, and on open shares with a cap.
  uses bigint not null default 0,
  metadata jsonb not null,
  owner_id text,
  agent_id text,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz,
  constraint uses_within_cap check (uses >= 0 and (max_uses is null or uses <= max_uses))
);
create unique index shares_by_target on shares (target_id);
create index shares_to_expire on shares (expires_at) where ended_at is null;
create index shares_ended on shares (ended_at) where ended_at is not null;

-- One row for each use that was spent. A row without a share is a fetch that was given back before it was spent,
-- so that a spend that arrives late finds its place taken.
create table fetches (
  id uuid primary key,
  share_id text,
  grant_id text,
  spent_at timestamptz not null default now(),
  returned_at timestamptz
);
-- What makes a grant work once.
create unique index fetches_grant_once on fetches (grant_id) where grant_id is not null and returned_at is null;
create index fetches_by_age on fetches (spent_at);

-- First answers of requests with an idempotency key, sealed, for 24 hours.
create table answers (
  scope text primary key,
  request_digest text not null,
  answer bytea not null,
  created_at timestamptz not null default now()
);
create index answers_by_age on answers (created_at);

create table outbox (
  id uuid primary key,
  event jsonb not null,
  attempts int not null default 0,
  send_after timestamptz not null default now()
);
create index outbox_due on outbox (send_after);
