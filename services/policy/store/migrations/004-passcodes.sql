-- Passcodes: a slow hash under a key that the database does not hold, and the tries at each share's.

alter table shares add column passcode_hash text;

-- Tries that failed, or are not known yet to be right, since a window began.
create table passcode_tries (
  share_id text primary key,
  since timestamptz not null default now(),
  tries int not null
);
create index passcode_tries_by_age on passcode_tries (since);
