-- Run once, after the roles are made: the passwords come from the same Secrets as the services' own.
\getenv policy PASSWORD_POLICY
\getenv storage PASSWORD_STORAGE
\getenv audit PASSWORD_AUDIT
\getenv importer PASSWORD_IMPORTER
alter role policy login password :'policy';
alter role storage login password :'storage';
alter role audit login password :'audit';
alter role importer login password :'importer';
