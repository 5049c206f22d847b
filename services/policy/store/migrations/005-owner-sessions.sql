-- Ending all sessions of an owner at once, and the tries at signing in.

-- A session counts only while it has its owner's epoch: one more, and every session ends, also one that is being opened at this moment.
alter table owners add column session_epoch int not null default 0;
alter table sessions add column epoch int not null default 0;
create index sessions_by_owner on sessions (owner_id) where ended_at is null;

-- Tries that failed, or are not known yet to be right, since a window began; by account and by address.
create table sign_in_tries (
  tried text primary key,
  since timestamptz not null default now(),
  tries int not null
);
create index sign_in_tries_by_age on sign_in_tries (since);
