-- Transfers, uploads and their parts, and the files that hold bytes. Tables are in the role's own schema.

create table outbox (
  id uuid primary key,
  event jsonb not null,
  attempts int not null default 0,
  send_after timestamptz not null default now()
);
create index outbox_due on outbox (send_after);

-- A transfer exists when its row does: that commit makes an upload final. Its id and its share's were fixed by its plan.
create table transfers (
  id text primary key,
  share_id text not null,
  plan_id text not null constraint transfers_plan unique,
  owner_id text,
  agent_id text,
  lane text not null check (lane in ('single', 'multipart', 'direct')),
  filename text not null,
  mime_type text not null,
  size bigint not null check (size >= 0),
  crc32 bigint,
  sha256 text,
  release jsonb not null,
  bytes bytea,
  segments jsonb,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz,
  ended_how text check (ended_how in ('deleted', 'expired')),
  check (ended_at is not null or (bytes is null) <> (segments is null))
);
-- Small assets stay in the row, uncompressed: one read of one page.
alter table transfers alter column bytes set storage external;
alter table transfers set (toast_tuple_target = 8160);
create index transfers_to_expire on transfers (expires_at) where ended_at is null;
create index transfers_to_purge on transfers (ended_at) where ended_at is not null;

-- What the policy service has yet to confirm: that a transfer's share exists, or that it has ended.
-- A table of its own, because marking the transfer would write its bytes once more.
create table settlements (
  transfer_id text primary key,
  wanted text not null check (wanted in ('created', 'ended')),
  since timestamptz not null default now()
);
create index settlements_due on settlements (since);

create table uploads (
  id text primary key,
  transfer_id text not null unique,
  share_id text not null,
  plan_id text not null constraint uploads_plan unique,
  plan_bound boolean not null,
  owner_id text,
  agent_id text,
  filename text not null,
  mime_type text not null,
  size bigint not null,
  sha256 text,
  release jsonb not null,
  part_size bigint not null,
  part_count int not null,
  max_parallel_parts int not null,
  main_key text not null,
  state text not null default 'initialized' check (state in ('initialized', 'completing', 'completed', 'aborted', 'expired')),
  parts_version int not null default 0,
  operation_hash text constraint uploads_operation unique,
  request_digest text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz
);
create index uploads_to_expire on uploads (expires_at) where state = 'initialized';
create index uploads_to_purge on uploads (ended_at) where ended_at is not null;

-- One attempt to write a part. The primary key is the claim of a part's place in the main file: one attempt has it.
-- `version` is set when the attempt is recorded; of a part's recorded attempts the highest counts.
create table parts (
  key text not null,
  part_number int not null,
  upload_id text not null,
  version int,
  size bigint,
  crc32 bigint,
  sha256 text,
  primary key (key, part_number)
);
create index parts_of_upload on parts (upload_id, part_number);

-- The truth of what may exist in the blob store: nothing is written there before its row is here.
create table blobs (
  key text primary key,
  state text not null default 'writing' check (state in ('writing', 'live', 'garbage')),
  upload_id text,
  transfer_id text,
  created_at timestamptz not null default now(),
  -- When to look whether anybody still writes. Absent for an upload's main file, which ends with its upload.
  check_after timestamptz,
  garbage_at timestamptz,
  removed_at timestamptz
);
create index blobs_of_upload on blobs (upload_id) where upload_id is not null;
create index blobs_of_transfer on blobs (transfer_id) where transfer_id is not null;
create index blobs_to_check on blobs (check_after) where state = 'writing' and check_after is not null;
create index blobs_to_remove on blobs (garbage_at) where state = 'garbage' and removed_at is null;
create index blobs_to_forget on blobs (removed_at) where removed_at is not null;

-- Which request an idempotency key came with first.
create table operations (
  scope text primary key,
  request_digest text not null,
  created_at timestamptz not null default now()
);
create index operations_by_age on operations (created_at);
