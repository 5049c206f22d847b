-- Uploads whose bytes come in order, in pieces, by one writer at a time: what a pipe's sender sends, or a resumable upload.

create table appends (
  id text primary key,
  -- The transfer whose readers may follow while the bytes come. Absent where a transfer is made of them in the end only.
  transfer_id text unique,
  state text not null default 'open' check (state in ('open', 'complete', 'failed')),
  max_bytes bigint not null,
  received bigint not null default 0 check (received >= 0 and received <= max_bytes),
  -- Where the next piece goes, and at which offset of the whole that file begins.
  key text,
  key_start bigint,
  -- Who writes, and until when that is believed without another word.
  lease text,
  lease_until timestamptz,
  created_at timestamptz not null default now(),
  ended_at timestamptz
);
create index appends_to_fail on appends (lease_until) where state = 'open' and lease is not null;
create index appends_to_purge on appends (ended_at) where ended_at is not null;

-- The bytes in their order. Neighbours in one file are one row.
create table pieces (
  append_id text not null,
  start bigint not null,
  key text not null,
  key_offset bigint not null,
  size bigint not null check (size > 0),
  primary key (append_id, start)
);

-- A pipe is begun by a request that may be sent again.
alter table appends add column operation_hash text constraint appends_operation unique;
alter table appends add column request_digest text;

-- A pipe whose sender was lost ends. While its sender writes, it has no segments; its size counts when it has.
alter table transfers drop constraint transfers_ended_how_check;
alter table transfers add check (ended_how in ('deleted', 'expired', 'failed'));
