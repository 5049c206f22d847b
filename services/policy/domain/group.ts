/** An agent group, and why a change of it is refused (interface chapter: Agent group record). */
import type { z } from 'zod';
import { memberLimit, type agentGroup } from '../../../shared/contracts/groups.ts';
import type { ErrorCode } from '../../../shared/errors.ts';

export type Group = z.output<typeof agentGroup>;
export type PolicyDefaults = Group['policyDefaults'];
export type Member = Group['members'][number];

/**
 * The versions that an If-Match header lets through, or undefined when any will do. `"3"`, `3` and a list of them name versions;
 * weak validators and anything else name none, and no change is made.
 */
export function versionsOf(ifMatch: string | undefined): string[] | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  return ifMatch.split(',').flatMap((tag) => /^\s*(?:"(\d+)"|(\d+))\s*$/.exec(tag)?.slice(1).filter(Boolean) ?? []);
}

/** Whether the group still has a version that the caller named. */
export function isCurrent(group: Pick<Group, 'version'>, versions: readonly string[] | undefined): boolean {
  return versions === undefined || versions.includes(String(group.version));
}

export function hasMember(group: Pick<Group, 'members'>, agentId: string): boolean {
  return group.members.some((member) => member.agentId === agentId);
}

/** Why an agent was not added: being a member already comes before there being no room. */
export function refusalOfAddition(group: Pick<Group, 'members'>, agentId: string): ErrorCode | undefined {
  if (hasMember(group, agentId)) return 'agent_already_member';
  return group.members.length >= memberLimit ? 'group_full' : undefined;
}

export function refusalOfRemoval(group: Pick<Group, 'members'>, agentId: string): ErrorCode | undefined {
  return hasMember(group, agentId) ? undefined : 'member_not_found';
}
