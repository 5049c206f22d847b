-- What callers have sent in their present window and in the one before. Unlogged: it is written often, is worth nothing after two windows,
-- and a database that crashed may begin counting anew.

create unlogged table rate_counts (
  bucket text primary key,
  began timestamptz not null,
  used int not null,
  previous int not null,
  granted int not null,
  -- When neither window says anything any more. Changes once a window, so that the updates within it stay off the index.
  forget_at timestamptz not null
) with (fillfactor = 50);
create index rate_counts_by_age on rate_counts (forget_at);
