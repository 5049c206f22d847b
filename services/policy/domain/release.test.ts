import { describe, expect, test } from 'vitest';
import { resolveRelease } from './release.ts';

const bounds = { default: 86_400, max: 604_800 };
const release = (fields: Parameters<typeof resolveRelease>[0]) => resolveRelease(fields, bounds);

describe('the release of a share', () => {
  test('without fields it is open, uncapped, and lives for the default time', () => {
    expect(release({})).toEqual({ mode: 'open', allowedAgentIds: [], ttl: 86_400, metadata: {} });
  });

  test.each([
    ['public', { mode: 'open' }],
    ['public-once', { mode: 'open', maxUses: 1 }],
    ['passcode-ready', { mode: 'open', maxUses: 10, ttl: 86_400, metadata: { gate: 'passcode-ready' } }],
  ] as const)('template %s sets its values', (policyTemplateId, values) => {
    expect(release({ policyTemplateId })).toMatchObject(values);
  });

  test.each([
    ['agent-only', { mode: 'agent', ttl: 86_400 }],
    ['expiring-handoff', { mode: 'agent', maxUses: 1, ttl: 3_600 }],
  ] as const)('template %s needs an allow list', (policyTemplateId, values) => {
    expect(() => release({ policyTemplateId })).toThrow(/allowedAgentIds/);
    expect(release({ policyTemplateId, allowedAgentIds: ['a'] })).toMatchObject({ ...values, allowedAgentIds: ['a'] });
  });

  test('explicit fields override the template', () => {
    expect(release({ policyTemplateId: 'expiring-handoff', authMode: 'open', ttl: 60, maxUses: 5 }))
      .toEqual({ mode: 'open', allowedAgentIds: [], maxUses: 5, ttl: 60, metadata: {} });
    expect(release({ policyTemplateId: 'passcode-ready', policyMetadata: { channel: 'x' } }).metadata)
      .toEqual({ gate: 'passcode-ready', channel: 'x' });
  });

  test('naming agents without a mode never makes an open link', () => {
    expect(release({ allowedAgentIds: ['a'] }).mode).toBe('agent');
    expect(() => release({ allowedAgentIds: ['a'], authMode: 'open' })).toThrow(/allowedAgentIds/);
    expect(() => release({ allowedAgentIds: ['a'], policyTemplateId: 'public' })).toThrow(/allowedAgentIds/);
  });

  test('agent mode without agents is refused', () => {
    expect(() => release({ authMode: 'agent' })).toThrow(/allowedAgentIds/);
  });

  test('a ttl over the deployment’s bound is refused, a template’s is cut to it', () => {
    expect(() => release({ ttl: 604_801 })).toThrow(/ttl/);
    expect(resolveRelease({ policyTemplateId: 'passcode-ready' }, { default: 60, max: 120 }).ttl).toBe(120);
  });
});
