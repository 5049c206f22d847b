/** Agent groups by their owner: make, list, change, delete, and who is a member (interface chapter: Agent groups). */
import type { Handler, HandlerContext } from '../../../shared/contract.ts';
import type { groups } from '../../../shared/contracts/groups.ts';
import { fail, type ErrorCode } from '../../../shared/errors.ts';
import { eventOf, type DomainEvent, type EventFacts } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { isCurrent, refusalOfAddition, refusalOfRemoval, versionsOf, type Group } from '../domain/group.ts';
import { ownerOf } from '../domain/owner.ts';
import type { GroupAddress, GroupChange } from '../store/groups.ts';
import { replayOr } from './replay.ts';

type GroupDeps = Pick<Deps, 'store' | 'clock'>;

interface Answer {
  readonly group: Group;
}

/** A kept answer is the group's record itself. */
const read = (row: unknown): Answer => ({ group: row as Group });

export const createAgentGroup = (deps: Deps): Handler<typeof groups.createAgentGroup> =>
  async function createAgentGroup(input, context) {
    const { store, clock } = deps;
    const ownerId = ownerOf(context.caller);
    return replayOr(deps, {
      contract: 'createAgentGroup', input, context, read,
      make: async (_seal, operation) => {
        const id = newId('group');
        const addedAt = new Date(clock()).toISOString();
        const members = input.members.map((member) => ({ ...member, addedAt, addedByAgentId: null }));
        const event = tellOf(deps, context, id, { eventType: 'agent_group.created', data: { name: input.name, memberCount: members.length } });
        return { group: await store.createGroup({ ...input, id, ownerId, members }, event, operation) };
      },
    });
  };

export const listAgentGroups = ({ store }: Pick<Deps, 'store'>): Handler<typeof groups.listAgentGroups> =>
  async function listAgentGroups({ limit }, { caller }) {
    const found = await store.listGroups(ownerOf(caller), limit);
    return { count: found.length, groups: found };
  };

export const updateAgentGroup = (deps: GroupDeps): Handler<typeof groups.updateAgentGroup> =>
  async function updateAgentGroup(input, context) {
    const address = addressOf(input, context);
    const { name, policyDefaults } = input;
    const changes = [...(name !== undefined ? ['name'] : []), ...(policyDefaults ? ['policyDefaults'] : [])];
    const event = tellOf(deps, context, input.groupId, { eventType: 'agent_group.updated', data: { changes } });
    // Values that were there already are no refusal: the group is as the caller wants it.
    return answerOf(await deps.store.updateGroup(address, { name, policyDefaults }, event), address);
  };

export const deleteAgentGroup = (deps: GroupDeps): Handler<typeof groups.deleteAgentGroup> =>
  async function deleteAgentGroup(input, context) {
    const address = addressOf(input, context);
    const event = tellOf(deps, context, input.groupId, { eventType: 'agent_group.deleted' });
    return answerOf(await deps.store.deleteGroup(address, event), address);
  };

export const addGroupMember = (deps: Deps): Handler<typeof groups.addGroupMember> =>
  async function addGroupMember(input, context) {
    const address = addressOf(input, context);
    const { groupId, agentId, role } = input;
    return replayOr(deps, {
      contract: 'addGroupMember', input, context, read,
      make: async (_seal, operation) => {
        const member = { agentId, role, addedAt: new Date(deps.clock()).toISOString(), addedByAgentId: null };
        const event = tellOf(deps, context, groupId, { eventType: 'agent_group.member_added', agentId, data: { role } });
        const change = await deps.store.addMember(address, member, event, operation);
        return answerOf(change, address, (group) => refusalOfAddition(group, agentId));
      },
    });
  };

export const removeGroupMember = (deps: GroupDeps): Handler<typeof groups.removeGroupMember> =>
  async function removeGroupMember(input, context) {
    const address = addressOf(input, context);
    const { groupId, agentId } = input;
    const event = tellOf(deps, context, groupId, { eventType: 'agent_group.member_removed', agentId });
    return answerOf(await deps.store.removeMember(address, agentId, event), address, (group) => refusalOfRemoval(group, agentId));
  };

function addressOf({ groupId, ifMatch }: { groupId: string; ifMatch?: string | undefined }, { caller }: HandlerContext): GroupAddress {
  return { groupId, ownerId: ownerOf(caller), versions: versionsOf(ifMatch) };
}

function tellOf({ clock }: Pick<Deps, 'clock'>, context: HandlerContext, groupId: string, facts: Pick<EventFacts, 'eventType' | 'agentId' | 'data'>): DomainEvent {
  return eventOf(context, clock(), { ...facts, targetType: 'agent_group', targetId: groupId });
}

/** The group after its change, or why there was none. Another owner's group is as good as none. */
function answerOf(change: GroupChange | undefined, { versions }: GroupAddress, refusal?: (group: Group) => ErrorCode | undefined): Answer {
  if (!change) throw fail('group_not_found');
  const { group, changed } = change;
  if (changed) return { group };
  if (!isCurrent(group, versions)) throw fail('precondition_failed', { detail: `The group has version ${group.version}.` });
  const code = refusal?.(group);
  if (code) throw fail(code);
  return { group };
}
