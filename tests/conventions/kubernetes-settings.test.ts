/** Settings and manifests name the same: nothing that a service reads is left to chance, and nothing is set that nobody reads. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeSecrets } from '../../deploy/kubernetes/make-secrets.ts';
import type { Named } from '../../shared/contract.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import type { SettingFacts } from '../../shared/settings.ts';
import { at, environmentOf, manifests, named, overlays, root, secretsOf, services, workloads } from '../support/manifests.ts';

/** For the embedded stack alone. */
const local = ['AEX_EXIT_WITH_PARENT'];
const isThere = (service: string) => existsSync(join(root, 'services', service, 'main.ts'));
const deployed = services('production').map(({ metadata }) => metadata.name);
const facts = (service: string) => JSON.parse(execFileSync(process.execPath, [`services/${service}/main.ts`, '--settings'], { cwd: root, encoding: 'utf8' })) as SettingFacts[];

/** What is in no manifest, as it may be. */
function secretFor(name: string): string {
  return { NATS_URL: 'nats://user:password@nats:4222', DATABASE_URL: 'postgres://user:password@postgres-rw:5432/aex', AEX_SECRET: 'A'.repeat(43), FIRST_OWNER_EMAIL: 'owner@localhost' }[name] ?? 'a secret of some length';
}

describe('settings', () => {
  test('there is a Deployment for every service', () => {
    const written = readdirSync(join(root, 'services')).filter(isThere);
    expect(written.sort()).toEqual([...deployed].sort());
  });

  test.each(deployed)('%s reads every setting of its manifest, and its manifest has every setting that it reads', (service) => {
    const read = facts(service).map(({ name }) => name).filter((name) => !local.includes(name));
    for (const overlay of overlays) expect(Object.keys(environmentOf(overlay, service)).sort()).toEqual([...read].sort());
  });

  test.each(deployed.flatMap((service) => overlays.map((overlay) => [service, overlay] as const)))('%s takes what the overlay %s sets', (service, overlay) => {
    const env = environmentOf(overlay, service, secretFor);
    const { status, stderr } = spawnSync(process.execPath, [`services/${service}/main.ts`, '--check-settings'], { cwd: root, env, encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  });

  test.each(overlays)('%s: a service is given all its time to stop', (overlay) => {
    for (const service of services(overlay)) {
      const pause = Number(at(service, 'spec.template.spec.containers.0.lifecycle.preStop.sleep.seconds') ?? 0);
      const drain = Number(environmentOf(overlay, service.metadata.name)['DRAIN_SECONDS']);
      expect(Number(at(service, 'spec.template.spec.terminationGracePeriodSeconds')), service.metadata.name).toBeGreaterThan(pause + drain);
    }
  });

  test.each(deployed.filter((service) => service !== 'gateway'))('%s may finish its longest request before it stops', (service) => {
    const longest = Math.max(...(Object.values(allContracts) as Named[]).filter((contract) => contract.service === service).map(({ deadlineMs = 5_000 }) => deadlineMs));
    for (const overlay of overlays) expect(1_000 * Number(environmentOf(overlay, service)['DRAIN_SECONDS'])).toBeGreaterThan(longest);
  });

  test('gateways are given an hour for the transfers they carry', () => {
    for (const overlay of overlays) expect(Number(environmentOf(overlay, 'gateway')['DRAIN_SECONDS'])).toBeGreaterThanOrEqual(3_600);
  });
});

describe('secrets', () => {
  test.each(overlays)('%s: every Secret that is needed is made, and no other', (overlay) => {
    const made = makeSecrets(overlay).flatMap(({ metadata, stringData }) => Object.keys(stringData).map((key) => `${metadata.name}/${key}`));
    const optional = ['first-owner/FIRST_OWNER_EMAIL', 'first-owner/FIRST_OWNER_PASSWORD'];
    // The database operator and the chart of NATS read these by name.
    const byOthers = made.filter((name) => /-database\/(username|password)$|-nats\/password$/.test(name));
    expect([...new Set([...secretsOf(overlay, { optional: false }), ...optional, ...byOthers])].sort()).toEqual(made.sort());
  });

  test('no two makings have a value in common, and every service has its own', () => {
    const values = [...makeSecrets('production'), ...makeSecrets('production')].flatMap(({ stringData }) => Object.entries(stringData))
      .filter(([key]) => !['username', 'FIRST_OWNER_EMAIL', 'NATS_URL', 'DATABASE_URL'].includes(key)).map(([, value]) => value);
    expect(new Set(values).size).toBe(values.length);
  });

  test('no manifest has a secret in it', () => {
    const literal = overlays.flatMap(workloads).flatMap((workload) => JSON.stringify(workload).match(/"name":"[A-Z_]*(PASSWORD|SECRET|KEY|URL)[A-Z_]*","value":"[^"]+"/g) ?? []);
    expect(literal).toEqual([]);
    for (const overlay of overlays) expect(manifests[overlay].filter(({ kind }) => kind === 'Secret')).toEqual([]);
  });

  test('the importer is given no secret but its own connections', () => {
    const references = JSON.stringify(named(manifests.production, 'Deployment', 'importer')).match(/"secretKeyRef":\{"name":"[^"]+"/g);
    expect(references).toEqual(['"secretKeyRef":{"name":"importer-nats"', '"secretKeyRef":{"name":"importer-database"']);
  });
});
