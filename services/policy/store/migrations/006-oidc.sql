-- Owners who sign in at an OpenID Connect provider: known by issuer and subject, without a password.

alter table owners alter column password_hash drop not null;
alter table owners add column oidc_issuer text;
alter table owners add column oidc_subject text;
alter table owners add constraint one_way_to_sign_in check ((password_hash is null) = (oidc_subject is not null) and (oidc_issuer is null) = (oidc_subject is null));
create unique index owners_by_subject on owners (oidc_issuer, oidc_subject) where oidc_subject is not null;

-- Sign-ins that came back from the provider: each may once.
create table oidc_returns (
  flow text primary key,
  returned_at timestamptz not null default now()
);
create index oidc_returns_by_age on oidc_returns (returned_at);
