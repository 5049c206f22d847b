-- Run once by an administrator in the database `aex`: a role and a schema for each service that keeps rows, and nothing else for anybody.
-- Whoever runs it gives each role its password and LOGIN afterwards.
create role policy;
create role storage;
create role audit;
create role importer;
revoke all on database aex from public;
revoke all on schema public from public;
grant connect on database aex to policy, storage, audit, importer;
create schema policy authorization policy;
create schema storage authorization storage;
create schema audit authorization audit;
create schema importer authorization importer;
alter role policy in database aex set search_path = policy;
alter role storage in database aex set search_path = storage;
alter role audit in database aex set search_path = audit;
alter role importer in database aex set search_path = importer;
