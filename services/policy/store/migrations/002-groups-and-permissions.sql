-- Agent groups and standing permissions of an owner.

-- Members and defaults stand in the group's row, so that a change of any of them is one guarded statement.
create table agent_groups (
  id text primary key,
  owner_id text not null references owners,
  name text not null,
  members jsonb not null,
  policy_defaults jsonb not null,
  version int not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint members_within_limit check (jsonb_array_length(members) <= 100)
);
create index agent_groups_by_owner on agent_groups (owner_id, created_at desc);

create table standing_permissions (
  id text primary key,
  owner_id text not null references owners,
  from_agent_id text not null references agents,
  -- May belong to another owner, or to nobody yet.
  to_agent_id text not null,
  scopes jsonb not null,
  constraints jsonb not null,
  version int not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  -- Who made and revoked it, and by which requests.
  audit jsonb not null
);
create index standing_permissions_by_owner on standing_permissions (owner_id, created_at desc);
