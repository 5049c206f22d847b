-- Shares as their owner sees them: newest first, how each ended, and for how long the bytes behind it are kept.

create index shares_by_owner on shares (owner_id, created_at desc, id desc) where owner_id is not null;

alter table shares
  add column ended_how text check (ended_how in ('expired', 'revoked', 'deleted')),
  -- The latest expiry that the share ever had, which is that of its bytes. Absent while it still has its first one.
  add column target_expires_at timestamptz;

update shares set ended_how = case when ended_at >= expires_at then 'expired' else 'deleted' end where ended_at is not null;
