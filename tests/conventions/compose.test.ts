/** deploy/compose.yaml gives each service exactly what it reads, and no container more rights or reach than it needs. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { filesFrom } from '../../deploy/compose/secrets.ts';
import type { SettingFacts } from '../../shared/settings.ts';
import type { Fields } from '../support/kustomize.ts';
import { at, root } from '../support/manifests.ts';

const text = readFileSync(join(root, 'deploy/compose.yaml'), 'utf8');
// As Compose replaces them where nothing is set.
const withDefaults = text.replace(/\$\{PORT:-8787\}/g, '8787').replace(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1');
const compose = parse(withDefaults, { merge: true }) as { services: Record<string, Fields>; networks: Record<string, Fields | null> };
const containers = Object.entries(compose.services);
const own = ['gateway', 'policy', 'storage', 'audit', 'importer'];
const secret = 'A'.repeat(43);
const made = await filesFrom(secret);
const folder = mkdtempSync(join(tmpdir(), 'aex-compose-'));
afterAll(() => rmSync(folder, { recursive: true }));

const given = (name: string) => at(compose.services[name], 'environment') as Record<string, string>;
const environmentOf = (name: string) => ({ ...(parseEnv(readFileSync(join(root, 'deploy', String(at(compose.services[name], 'env_file'))), 'utf8')) as Record<string, string>), ...given(name) });
const madeFor = (name: string) => made.filter(({ path }) => path.startsWith(`${name}/`));
const facts = (service: string) => JSON.parse(execFileSync(process.execPath, [`services/${service}/main.ts`, '--settings'], { cwd: root, encoding: 'utf8' })) as SettingFacts[];

/** The environment with files where a container of the service would see them. */
function withFiles(service: string): Record<string, string> {
  for (const { path, text: content } of madeFor(service)) writeFileSync(join(folder, path.replace('/', '-')), content);
  return Object.fromEntries(Object.entries(environmentOf(service)).map(([name, value]) => [name, value.replace('/run/exchange/', `${folder}/${service}-`)]));
}

describe('settings in Compose', () => {
  test.each(own)('%s is given every setting that it reads, and no other', (service) => {
    const read = facts(service).map(({ name }) => name).filter((name) => name !== 'AEX_EXIT_WITH_PARENT');
    const named = Object.keys(environmentOf(service)).map((name) => name.replace(/_FILE$/, ''));
    expect(named.sort()).toEqual(read.sort());
  });

  test.each(own)('%s takes what it is given', (service) => {
    const { status, stderr } = spawnSync(process.execPath, [`services/${service}/main.ts`, '--check-settings'], { cwd: root, env: withFiles(service), encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  });

  test.each(own)('%s is given all its time to stop', (service) => {
    expect(parseInt(String(compose.services[service]!['stop_grace_period']))).toBeGreaterThan(Number(environmentOf(service)['DRAIN_SECONDS']));
  });
});

describe('secrets in Compose', () => {
  test('no environment and no file of the project has one in it', () => {
    const values = containers.flatMap(([name]) => Object.entries(given(name) ?? {})).filter(([name]) => /PASSWORD|SECRET|KEY|_URL/.test(name) && name !== 'BASE_URL');
    expect(values.filter(([name, value]) => value !== '' && !(name.endsWith('_FILE') && value.startsWith('/')))).toEqual([]);
  });

  test.each(own)('%s finds every file that it is told of, and no file is made for it that it does not read', (service) => {
    const told = Object.values(given(service)).filter((value) => value.startsWith('/run/exchange/')).map((value) => value.replace('/run/exchange', service));
    expect(madeFor(service).map(({ path }) => path).sort()).toEqual(told.sort());
  });

  test('each container sees its own volume of them alone, and cannot write it', () => {
    for (const [name, container] of containers.filter(([name]) => name !== 'secrets')) {
      const volumes = (container['volumes'] as string[]).filter((volume) => volume.startsWith('for-') || volume.startsWith('secret'));
      expect(volumes, name).toEqual([expect.stringMatching(new RegExp(`^for-${name}:.*:ro$`))]);
    }
  });

  test('every file has a volume to be in', () => {
    const mounted = (compose.services['secrets']!['volumes'] as string[]).filter((volume) => volume.startsWith('for-')).map((volume) => volume.split('/').at(-1));
    expect([...new Set(made.map(({ path }) => path.split('/')[0]))].sort()).toEqual(mounted.sort());
  });

  test('NATS and PostgreSQL know the passwords that services are given, each its own', () => {
    const content = (path: string) => made.find((file) => file.path === path)!.text;
    const known = { NATS_URL: content('nats/authorization.conf'), DATABASE_URL: content('postgres/20-passwords.sql') };
    const passwords = own.flatMap((service) => (['NATS_URL', 'DATABASE_URL'] as const).filter((name) => given(service)[`${name}_FILE`]).map((name) => {
      const { username, password } = new URL(content(`${service}/${name}`));
      const place = name === 'NATS_URL' ? `user: ${username}\n      password: "${password}"` : `\\set ${username} '${password}'`;
      expect(known[name]).toContain(place);
      return password;
    }));
    expect(new Set(passwords).size).toBe(9);
    for (const file of Object.values(known)) expect(file).not.toMatch(/\$NATS_PASSWORD|\\getenv/);
  });
});

describe('a container of Compose', () => {
  test.each(containers)('%s: cannot write its root, gain rights or take all memory', (name, container) => {
    expect(container).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
    expect(at(container, 'deploy.resources.limits')).toEqual({ memory: expect.any(String), pids: expect.any(Number) });
    for (const field of ['privileged', 'devices', 'pid', 'ipc']) expect(container).not.toHaveProperty(field);
    expect(container['cap_add'] ?? []).toEqual(name === 'secrets' ? ['CHOWN'] : []);
    expect(container['user']).toMatch(name === 'secrets' ? /^0:0$/ : /^(65532:65532|999:999)$/);
  });

  test.each(containers)('%s: has an image of one version', (_name, { image }) => {
    expect(image).toMatch(/:v?\d+\.\d+(\.\d+)?(-[a-z]+)?$/);
  });

  test.each(containers.filter(([name]) => name !== 'secrets'))('%s: waits for what it needs to be healthy, and says when it is', (_name, container) => {
    expect(container['healthcheck']).toMatchObject({ test: expect.any(Array) });
    for (const [needed, { condition }] of Object.entries(container['depends_on'] as Record<string, { condition: string }>)) {
      expect(condition).toBe(needed === 'secrets' ? 'service_completed_successfully' : 'service_healthy');
    }
  });

  test.each([
    ['gateway', ['edge', 'bus', 'objects']], ['policy', ['bus', 'database']], ['storage', ['bus', 'database', 'objects']], ['audit', ['bus', 'database']],
    ['importer', ['bus', 'database', 'objects', 'internet']], ['proxy', ['front', 'edge']], ['nats', ['bus']], ['postgres', ['database']], ['s3', ['objects']],
  ])('%s reaches what it needs and nothing else', (name, networks) => {
    expect(compose.services[name]!['networks']).toEqual(networks);
  });

  test('only the importer is let out, and only the proxy lets in, from this machine', () => {
    expect(Object.entries(compose.networks).filter(([, network]) => !network?.['internal']).map(([name]) => name)).toEqual(['front', 'internet']);
    expect(at(compose.networks['front'], 'driver_opts')).toEqual({ 'com.docker.network.bridge.enable_ip_masquerade': 'false' });
    expect(containers.filter(([, { ports }]) => ports).map(([name, { ports }]) => [name, ports])).toEqual([['proxy', ['127.0.0.1:8787:8787']]]);
    expect(compose.services['secrets']).toMatchObject({ network_mode: 'none' });
  });

  test('there are as many of each service as REPLICAS says', () => {
    expect(own.filter((service) => !(at(parse(text, { merge: true }), `services.${service}.deploy.replicas`) === '${REPLICAS:-1}'))).toEqual([]);
  });
});
