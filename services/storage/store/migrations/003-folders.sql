-- Folders: transfers whose bytes are files of their own. A file has a row here from its declaration, an upload, and a transfer once it is ready.
-- A file lives as long as its folder, whatever the file's own rows say: ending a folder, or keeping it longer, changes one row and not a hundred thousand.

alter table transfers add column folder_id text;
alter table uploads add column folder_id text;
drop index transfers_to_expire;
create index transfers_to_expire on transfers (expires_at) where ended_at is null and folder_id is null;

create table folders (
  id text primary key,
  part_size bigint not null,
  max_parallel_parts int not null,
  max_file_bytes bigint not null,
  -- What was declared. What of it ended is taken off when a limit is met.
  files int not null default 0,
  bytes bigint not null default 0,
  last_place int not null default 0,
  -- Set with the end of its transfer; the row goes when every file has ended too.
  ended_at timestamptz
);
create index folders_to_empty on folders (ended_at) where ended_at is not null;

create table folder_files (
  folder_id text not null,
  -- Counts up from 1 in each folder: the order of its lists and archives.
  place int not null,
  id text not null unique,
  upload_id text not null unique,
  path text not null,
  -- What the archive calls it, and that without case: no two files of a folder may unpack to one.
  archive_name text not null,
  name_key text not null collate "C",
  size bigint not null,
  mime_type text not null,
  crc32 bigint,
  ready_at timestamptz,
  -- Given up, deleted, or ended with the folder. Kept for a while: an archive under way still lists it.
  gone_at timestamptz,
  primary key (folder_id, place)
);
create unique index folder_files_name on folder_files (folder_id, name_key) where gone_at is null;
create index folder_files_unready on folder_files (folder_id) where ready_at is null and gone_at is null;
create index folder_files_to_purge on folder_files (gone_at) where gone_at is not null;

-- Commands to complete a file: accepted before their 202, worked off by whichever process claims them.
create table completions (
  folder_id text not null,
  operation_id text not null,
  file_id text not null,
  upload_id text not null,
  state text not null default 'accepted' check (state in ('accepted', 'running', 'ready', 'failed')),
  attempts int not null default 0,
  error jsonb,
  -- Where the command came from, for the record.
  request jsonb not null,
  -- When it is due; while it is running, when its lease ends.
  run_after timestamptz not null default now(),
  created_at timestamptz not null default now(),
  primary key (folder_id, operation_id)
);
create index completions_due on completions (run_after) where state in ('accepted', 'running');
create index completions_by_age on completions (created_at);

-- Declares a file. Declarations of one folder wait for each other at its row, and each statement of a function sees what the ones before it committed:
-- so a path and the folders above it, the count and the sum are checked against everything declared so far.
create function declare_file(file jsonb, event jsonb) returns text language plpgsql as $$
declare
  folder folders;
  key text := file->>'nameKey';
  file_bytes bigint := (file->>'size')::bigint;
begin
  select * into folder from folders where id = file->>'folderId' and ended_at is null for update;
  if not found then return 'folder_gone'; end if;
  if exists (select from uploads where operation_hash = file->>'operationHash') then return 'declared_before'; end if;
  if exists (select from folder_files where folder_id = folder.id and gone_at is null and name_key in (select jsonb_array_elements_text(file->'parentKeys') union select key))
    or exists (select from folder_files where folder_id = folder.id and gone_at is null and name_key > key || '/' and name_key < key || '0')
  then return 'path_taken'; end if;
  if folder.files >= (file->>'maxFiles')::int or folder.bytes + file_bytes > (file->>'maxBytes')::bigint then
    select count(*), coalesce(sum(size), 0) into folder.files, folder.bytes from folder_files where folder_id = folder.id and gone_at is null;
    if folder.files >= (file->>'maxFiles')::int then return 'too_many_files'; end if;
    if folder.bytes + file_bytes > (file->>'maxBytes')::bigint then return 'too_many_bytes'; end if;
  end if;
  update folders set files = folder.files + 1, bytes = folder.bytes + file_bytes, last_place = last_place + 1 where id = folder.id;
  insert into folder_files (folder_id, place, id, upload_id, path, archive_name, name_key, size, mime_type)
  values (folder.id, folder.last_place + 1, file->>'fileId', file->>'uploadId', file->>'path', file->>'archiveName', key, file_bytes, file->>'mimeType');
  -- The column of the lane comes with a later migration. No plan and no release are its own: its folder has both. Its id stands where a plan's would.
  insert into uploads (
    id, transfer_id, share_id, plan_id, plan_bound, folder_id, owner_id, agent_id, filename, mime_type, size, release,
    part_size, part_count, max_parallel_parts, main_key, lane, operation_hash, request_digest, expires_at)
  select
    file->>'uploadId', file->>'fileId', share_id, file->>'fileId', false, id, owner_id, agent_id, file->>'filename', file->>'mimeType', file_bytes, '{}',
    (file->>'partSize')::bigint, (file->>'partCount')::int, folder.max_parallel_parts, file->>'mainKey', file->>'lane', file->>'operationHash', file->>'requestDigest',
    least(date_trunc('milliseconds', now()) + make_interval(secs => (file->>'ttl')::int), expires_at)
  from transfers where id = folder.id;
  insert into blobs (key, upload_id) values (file->>'mainKey', file->>'uploadId');
  insert into outbox (id, event) values ((declare_file.event->>'id')::uuid, declare_file.event);
  return 'declared';
end $$;
