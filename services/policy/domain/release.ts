/** What a share will allow: a template, a group's defaults over it, the explicit fields over both, and the deployment's bounds (interface chapter: Policy). */
import type { z } from 'zod';
import type { Release } from '../../../shared/contracts/plans.ts';
import type { templateId } from '../../../shared/contracts/fields.ts';
import { failField } from '../../../shared/errors.ts';
import type { PolicyDefaults } from './group.ts';

/** The policy fields of a creation request. */
export interface PolicyFields {
  readonly ttl?: number | undefined;
  readonly maxUses?: number | undefined;
  readonly authMode?: 'open' | 'agent' | undefined;
  readonly allowedAgentIds?: readonly string[] | undefined;
  readonly policyTemplateId?: z.output<typeof templateId> | undefined;
  readonly policyMetadata?: Readonly<Record<string, string>> | undefined;
}

/** Seconds. */
export interface TtlBounds {
  readonly default: number;
  readonly max: number;
}

type Template = Partial<Pick<Release, 'mode' | 'maxUses' | 'ttl' | 'metadata'>>;

const templates: Readonly<Record<z.output<typeof templateId>, Template>> = {
  public: { mode: 'open' },
  'public-once': { mode: 'open', maxUses: 1 },
  'agent-only': { mode: 'agent' },
  'expiring-handoff': { mode: 'agent', maxUses: 1, ttl: 3_600 },
  'passcode-ready': { mode: 'open', maxUses: 10, ttl: 86_400, metadata: { gate: 'passcode-ready' } },
};

/** No share lives shorter, in seconds. */
const shortestTtl = 30;

/**
 * Fixes the release of a share. A group's defaults override the template, and explicit fields override both.
 * A request that names agents or a group without a mode means agent mode: it must never become an open link.
 * @throws invalid_request that names the field
 */
export function resolveRelease(fields: PolicyFields, bounds: TtlBounds, group?: PolicyDefaults): Release {
  const template = fields.policyTemplateId ? templates[fields.policyTemplateId] : {};
  const named = fields.allowedAgentIds ?? [];
  const mode = fields.authMode ?? group?.mode ?? template.mode ?? (named.length > 0 ? 'agent' : 'open');
  const allowed = [...(fields.allowedAgentIds ?? (mode === 'agent' ? group?.allowedAgentIds : undefined) ?? [])];
  if (mode === 'open' && allowed.length > 0) throw failField('allowedAgentIds', 'must be empty for an open share');
  if (mode === 'agent' && allowed.length === 0) throw failField('allowedAgentIds', 'must name at least one agent for an agent share');
  const maxUses = fields.maxUses ?? group?.maxUses ?? template.maxUses;
  const metadata = { ...template.metadata, ...group?.metadata, ...fields.policyMetadata };
  if (Object.keys(metadata).length > 16) throw failField('policyMetadata', 'must have at most 16 keys with those of the template and the group');
  const ttl = resolveTtl(fields.ttl, template.ttl ?? bounds.default, bounds.max, group?.maxTtlSeconds);
  return { mode, allowedAgentIds: allowed, ...(maxUses !== undefined && { maxUses }), ttl, metadata };
}

/** A ttl that is filled in is cut to the bounds; one that was asked for is refused beyond them, so that nobody gets less than they believe. */
function resolveTtl(asked: number | undefined, filledIn: number, max: number, groupMax = max): number {
  const most = Math.min(max, groupMax);
  if (asked !== undefined && asked > most) throw failField('ttl', most < max ? `must be at most ${most} seconds, the maxTtlSeconds of the group` : `must be at most ${max} seconds`);
  if (most < shortestTtl) throw failField('agentGroupId', `allows ${most} seconds, and a share lives for at least ${shortestTtl}`);
  return asked ?? Math.min(filledIn, most);
}
