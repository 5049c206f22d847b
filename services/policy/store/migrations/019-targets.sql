-- Folders and pipes have no size: of the one no bytes are its own, of the other they are not all there yet.

alter table shares alter column size drop not null;
