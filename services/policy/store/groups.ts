/** Agent groups: each one row, members and defaults included, so that a change is one guarded statement. */
import { memberLimit } from '../../../shared/contracts/groups.ts';
import type { Database, Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import type { Group, Member, PolicyDefaults } from '../domain/group.ts';
import type { Operation } from '../../../shared/operation.ts';
import { withRowAnswer } from './answers.ts';
import { isoTime } from './iso-time.ts';

/** Which group, and which versions of it may be changed; undefined for any. */
export interface GroupAddress {
  readonly groupId: string;
  readonly ownerId: string;
  readonly versions: readonly string[] | undefined;
}

/** The group after a change, or as it was found when the change did not fit it. */
export interface GroupChange {
  readonly group: Group;
  readonly changed: boolean;
}

export type NewGroup = Pick<Group, 'id' | 'ownerId' | 'name' | 'members' | 'policyDefaults'>;

type Fragment = ReturnType<Sql>;

/** What a change sets, and what must hold of the row as it was `found` for it to be one. */
interface Alteration {
  readonly set: Fragment;
  readonly guard: Fragment;
}

/** The interface's record of the row that is called `g`. */
const recordOf = (sql: Sql) => sql`json_build_object(
  'id', g.id, 'ownerId', g.owner_id, 'name', g.name, 'members', g.members, 'policyDefaults', g.policy_defaults,
  'createdAt', ${isoTime(sql, 'g.created_at')}, 'updatedAt', ${isoTime(sql, 'g.updated_at')}, 'createdByAgentId', null, 'version', g.version)`;

/** The row as it is now, locked: who waited for another change sees what that one made of it. */
const findForChange = (sql: Sql, { groupId, ownerId }: GroupAddress) => sql`
  select * from agent_groups where id = ${groupId} and owner_id = ${ownerId} for update`;

const isCurrent = (sql: Sql, { versions }: GroupAddress) =>
  versions === undefined ? sql`true` : sql`found.version::text = any(${versions as string[]}::text[])`;

/** The event, with the version that the change made. */
const tell = (sql: Sql, event: DomainEvent) => sql`
  insert into outbox (id, event)
  select ${event.id}::uuid, jsonb_set(${sql.json(event as never)}::jsonb, '{data,version}', to_jsonb(g.version)) from changed g`;

/** What came of it: the changed row, or the one that was found. */
const outcome = (sql: Sql) => sql`
  select ${recordOf(sql)} as "group", true as changed from changed g
  union all
  select ${recordOf(sql)}, false from found g where not exists (select from changed)`;

export function groupsStore(database: Database) {
  async function alter(address: GroupAddress, event: DomainEvent, alteration: (sql: Sql) => Alteration, operation?: Operation): Promise<GroupChange | undefined> {
    const rows = await database.run((sql) => {
      const { set, guard } = alteration(sql);
      return sql<GroupChange[]>`
        with found as (${findForChange(sql, address)}), changed as (
          -- Not now(): that is when the statement began, which may be before a change it waited for.
          update agent_groups g set ${set}, version = g.version + 1, updated_at = clock_timestamp()
          from found where g.id = found.id and ${isCurrent(sql, address)} and ${guard}
          returning g.*
        ), told as (${tell(sql, event)})${withRowAnswer(sql, operation, 'changed', sql`select ${recordOf(sql)} from changed g`)}
        ${outcome(sql)}`;
    });
    return rows[0];
  }

  return {
    async createGroup({ id, ownerId, name, members, policyDefaults }: NewGroup, event: DomainEvent, operation?: Operation): Promise<Group> {
      const rows = await database.run((sql) => sql<{ group: Group }[]>`
        with changed as (
          insert into agent_groups (id, owner_id, name, members, policy_defaults)
          values (${id}, ${ownerId}, ${name}, ${sql.json(members as never)}, ${sql.json(policyDefaults as never)})
          returning *
        ), told as (${tell(sql, event)})${withRowAnswer(sql, operation, 'changed', sql`select ${recordOf(sql)} from changed g`)}
        select ${recordOf(sql)} as "group" from changed g`);
      return rows[0]!.group;
    },

    async listGroups(ownerId: string, limit: number): Promise<Group[]> {
      const rows = await database.run((sql) => sql<{ group: Group }[]>`
        select ${recordOf(sql)} as "group" from agent_groups g where owner_id = ${ownerId} order by created_at desc, id limit ${limit}`);
      return rows.map(({ group }) => group);
    },

    async findPolicyDefaults(groupId: string, ownerId: string): Promise<PolicyDefaults | undefined> {
      const rows = await database.run((sql) => sql<{ policyDefaults: PolicyDefaults }[]>`
        select policy_defaults as "policyDefaults" from agent_groups where id = ${groupId} and owner_id = ${ownerId}`);
      return rows[0]?.policyDefaults;
    },

    /** Changes name, defaults or both. Values that are there already are no change. */
    async updateGroup(address: GroupAddress, wish: { name?: string | undefined; policyDefaults?: PolicyDefaults | undefined }, event: DomainEvent) {
      return alter(address, event, (sql) => {
        const name = sql`coalesce(${wish.name ?? null}::text, found.name)`;
        const defaults = wish.policyDefaults ? sql`${sql.json(wish.policyDefaults as never)}::jsonb` : sql`found.policy_defaults`;
        return {
          set: sql`name = ${name}, policy_defaults = ${defaults}`,
          guard: sql`(found.name, found.policy_defaults) is distinct from (${name}, ${defaults})`,
        };
      });
    },

    /** Adds a member while there is room, and leaves the defaults alone. */
    async addMember(address: GroupAddress, member: Member, event: DomainEvent, operation?: Operation) {
      return alter(address, event, (sql) => ({
        set: sql`members = g.members || jsonb_build_array(${sql.json(member as never)}::jsonb)`,
        guard: sql`jsonb_array_length(found.members) < ${memberLimit}
          and not found.members @> jsonb_build_array(jsonb_build_object('agentId', ${member.agentId}::text))`,
      }), operation);
    },

    /** Removes a member, and its id from the defaults. */
    async removeMember(address: GroupAddress, agentId: string, event: DomainEvent) {
      return alter(address, event, (sql) => ({
        set: sql`
          members = (
            select coalesce(jsonb_agg(member order by place), '[]')
            from jsonb_array_elements(g.members) with ordinality as listed (member, place) where member->>'agentId' <> ${agentId}),
          policy_defaults = jsonb_set(g.policy_defaults, '{allowedAgentIds}', (g.policy_defaults->'allowedAgentIds') - ${agentId}::text)`,
        guard: sql`found.members @> jsonb_build_array(jsonb_build_object('agentId', ${agentId}::text))`,
      }));
    },

    async deleteGroup(address: GroupAddress, event: DomainEvent): Promise<GroupChange | undefined> {
      const rows = await database.run((sql) => sql<GroupChange[]>`
        with found as (${findForChange(sql, address)}), changed as (
          delete from agent_groups g using found where g.id = found.id and ${isCurrent(sql, address)}
          returning g.*
        ), told as (${tell(sql, event)})
        ${outcome(sql)}`);
      return rows[0];
    },
  };
}
