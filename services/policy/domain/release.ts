/** What a share will allow: a template, the explicit fields over it, and the deployment's bounds (interface chapter: Policy). */
import type { z } from 'zod';
import type { Release } from '../../../shared/contracts/plans.ts';
import type { templateId } from '../../../shared/contracts/fields.ts';
import { failField } from '../../../shared/errors.ts';

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

/**
 * Fixes the release of a share. Explicit fields override the template.
 * A request that names agents without a mode means agent mode: it must never become an open link.
 * @throws invalid_request that names the field
 */
export function resolveRelease(fields: PolicyFields, bounds: TtlBounds): Release {
  const template = fields.policyTemplateId ? templates[fields.policyTemplateId] : {};
  const allowed = [...(fields.allowedAgentIds ?? [])];
  const mode = fields.authMode ?? template.mode ?? (allowed.length > 0 ? 'agent' : 'open');
  if (mode === 'open' && allowed.length > 0) throw failField('allowedAgentIds', 'must be empty for an open share');
  if (mode === 'agent' && allowed.length === 0) throw failField('allowedAgentIds', 'must name at least one agent for an agent share');
  const ttl = fields.ttl ?? Math.min(template.ttl ?? bounds.default, bounds.max);
  if (ttl > bounds.max) throw failField('ttl', `must be at most ${bounds.max} seconds`);
  const maxUses = fields.maxUses ?? template.maxUses;
  const metadata = { ...template.metadata, ...fields.policyMetadata };
  if (Object.keys(metadata).length > 16) throw failField('policyMetadata', 'must have at most 16 keys with those of the template');
  return { mode, allowedAgentIds: allowed, ...(maxUses !== undefined && { maxUses }), ttl, metadata };
}
