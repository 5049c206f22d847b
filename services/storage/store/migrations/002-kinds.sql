-- A transfer is a file, a folder of files or a pipe. Folders have no bytes of their own, and a pipe has none while its sender still writes.
-- The lane of these two is not one of a plan's.

alter table transfers add column kind text not null default 'file' check (kind in ('file', 'folder', 'pipe'));
alter table transfers drop constraint transfers_lane_check;
alter table transfers add check (lane in ('single', 'multipart', 'direct', 'folder', 'pipe'));
alter table transfers drop constraint transfers_check;
alter table transfers add constraint transfers_content check (ended_at is not null or kind <> 'file' or (bytes is null) <> (segments is null));
