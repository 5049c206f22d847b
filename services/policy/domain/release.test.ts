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

describe('the defaults of a group', () => {
  const group = { mode: 'agent' as const, allowedAgentIds: ['a', 'b'], maxTtlSeconds: 600, maxUses: 5, metadata: { team: 'x', step: 'group' } };
  const grouped = (fields: Parameters<typeof resolveRelease>[0], defaults: Parameters<typeof resolveRelease>[2] = group) => resolveRelease(fields, bounds, defaults);

  test('fill in what the request leaves out', () => {
    expect(grouped({})).toEqual({ mode: 'agent', allowedAgentIds: ['a', 'b'], maxUses: 5, ttl: 600, metadata: { team: 'x', step: 'group' } });
  });

  test('override the template, and explicit fields override both', () => {
    expect(grouped({ policyTemplateId: 'passcode-ready' })).toEqual({
      mode: 'agent', allowedAgentIds: ['a', 'b'], maxUses: 5, ttl: 600, metadata: { gate: 'passcode-ready', team: 'x', step: 'group' },
    });
    expect(grouped({ policyTemplateId: 'expiring-handoff', allowedAgentIds: ['c'], maxUses: 2, ttl: 60, policyMetadata: { step: 'own' } }))
      .toEqual({ mode: 'agent', allowedAgentIds: ['c'], maxUses: 2, ttl: 60, metadata: { team: 'x', step: 'own' } });
    expect(grouped({ policyTemplateId: 'expiring-handoff' }, { mode: 'agent', allowedAgentIds: ['a'] })).toMatchObject({ maxUses: 1, ttl: 3_600 });
  });

  test('an explicit open mode leaves their allow list out', () => {
    expect(grouped({ authMode: 'open' })).toMatchObject({ mode: 'open', allowedAgentIds: [] });
    expect(() => grouped({ authMode: 'open', allowedAgentIds: ['a'] })).toThrow(/allowedAgentIds/);
  });

  test('an empty allow list never makes an open link', () => {
    expect(() => grouped({}, { mode: 'agent', allowedAgentIds: [] })).toThrow(/allowedAgentIds/);
    expect(() => grouped({ policyTemplateId: 'public' }, { mode: 'agent', allowedAgentIds: [] })).toThrow(/allowedAgentIds/);
    expect(() => grouped({ allowedAgentIds: [] })).toThrow(/allowedAgentIds/);
  });

  test('maxTtlSeconds cuts the ttl that is filled in, and refuses a longer one that was asked for', () => {
    expect(grouped({ ttl: 600 }).ttl).toBe(600);
    expect(() => grouped({ ttl: 601 })).toThrow(/ttl: must be at most 600 seconds, the maxTtlSeconds of the group/);
    expect(grouped({}, { ...group, maxTtlSeconds: 604_800 }).ttl).toBe(86_400);
    expect(resolveRelease({}, { default: 60, max: 120 }, group).ttl).toBe(60);
    expect(() => resolveRelease({ ttl: 121 }, { default: 60, max: 120 }, group)).toThrow(/ttl: must be at most 120 seconds$/);
  });

  test('a maxTtlSeconds that is shorter than any share makes none', () => {
    expect(() => grouped({}, { ...group, maxTtlSeconds: 29 })).toThrow(/agentGroupId/);
    expect(grouped({}, { ...group, maxTtlSeconds: 30 }).ttl).toBe(30);
    expect(() => grouped({ ttl: 30 }, { ...group, maxTtlSeconds: 29 })).toThrow(/ttl/);
  });

  test('their labels count', () => {
    const policyMetadata = Object.fromEntries(Array.from({ length: 15 }, (_one, index) => [`own-${index}`, '']));
    expect(() => grouped({ policyMetadata })).toThrow(/policyMetadata/);
  });
});
