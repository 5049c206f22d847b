-- Object stores: parts of a large upload go into a session of the store, which makes one object of them before the upload becomes a transfer.

alter table blobs add column session text;

-- While the store puts an upload together no part of it may change: it is `assembling`. After that it is open again, and `sealed`.
alter table uploads drop constraint uploads_state_check;
alter table uploads add constraint uploads_state_check check (state in ('initialized', 'assembling', 'completing', 'completed', 'aborted', 'expired'));
alter table uploads add column lane text not null default 'multipart' check (lane in ('multipart', 'direct'));
alter table uploads add column sealed boolean not null default false;
alter table uploads add column assembling_since timestamptz;
drop index uploads_to_expire;
create index uploads_to_expire on uploads (expires_at) where state in ('initialized', 'assembling');
create index uploads_assembling on uploads (assembling_since) where state = 'assembling';

-- What the store calls a part, and where the part is in the object it became a piece of.
alter table parts add column etag text;
alter table parts add column place bigint;
