-- Run once by psql, after roles.sql, where nobody else gives the roles their passwords: they come from the environment.
\getenv policy PASSWORD_POLICY
\getenv storage PASSWORD_STORAGE
\getenv audit PASSWORD_AUDIT
\getenv importer PASSWORD_IMPORTER
alter role policy login password :'policy';
alter role storage login password :'storage';
alter role audit login password :'audit';
alter role importer login password :'importer';
