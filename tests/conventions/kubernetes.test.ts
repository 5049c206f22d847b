/** The manifests keep what docs/kubernetes.md promises: of pods, of the network, of replicas. Rendered here; kubectl and kubeconform are asked, too, where there are any. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { BlockList, isIPv4 } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { documentsOf, render, type Fields, type Resource } from '../support/kustomize.ts';
import { at, containersOf, environmentOf, folderOf, labelsOf, list, manifests, named, nameOf, ofKind, overlays, podOf, root, services, workloads, type Overlay } from '../support/manifests.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const has = (program: string) => spawnSync(program, ['--help'], { stdio: 'ignore' }).error === undefined;
const { version } = JSON.parse(read('package.json')) as { version: string };
const each = overlays.flatMap((overlay) => workloads(overlay).map((workload) => [overlay, nameOf(workload), workload] as const));
const eachContainer = each.flatMap(([overlay, name, workload]) => containersOf(workload).map((container) => [overlay, name, container] as const));

describe('the manifests', () => {
  test.skipIf(!has('kubectl')).each(overlays)('%s: kubectl renders what is tested here', (overlay) => {
    const { stdout } = spawnSync('kubectl', ['kustomize', folderOf(overlay)], { encoding: 'utf8', maxBuffer: 64 * 1_024 ** 2 });
    const plain = stdout.replace(/^(\s*(?:- )?name: [\w-]+)-[a-z0-9]{10}$/gm, (line, name: string) => (/settings|address|configuration|dashboard/.test(name) ? name : line));
    expect(sorted(documentsOf(plain))).toEqual(sorted(manifests[overlay]));
  });

  const kubernetes = join(root, 'deploy/kubernetes');
  const base = render(join(kubernetes, 'base'));
  const whole = [...overlays.map((overlay) => [overlay, manifests[overlay]] as const), ...readdirSync(join(kubernetes, 'components')).map((name) => [name, render(join(kubernetes, 'components', name), base)] as const)];

  test.skipIf(!has('kubeconform')).each(whole)('%s: kubeconform finds no field that its schema does not know', (_name, resources) => {
    const locations = (process.env['KUBECONFORM_SCHEMAS'] ?? 'default https://raw.githubusercontent.com/datreeio/CRDs-catalog/main/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json').split(' ');
    const { stdout, status } = spawnSync('kubeconform', ['-strict', ...locations.flatMap((location) => ['-schema-location', location])], { input: resources.map((resource) => JSON.stringify(resource)).join('\n---\n'), encoding: 'utf8' });
    expect(stdout).toBe('');
    expect(status).toBe(0);
  });

  test.each(whole)('%s: no two resources have one name', (_name, resources) => {
    expect(new Set(resources.map(nameOf)).size).toBe(resources.length);
  });

  test('every file is well-formed', () => {
    const files = readdirSync(join(root, 'deploy/kubernetes'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml') && statSync(join(root, 'deploy/kubernetes', name)).isFile());
    expect(files.length).toBeGreaterThan(30);
    for (const file of files) expect(() => documentsOf(read(join('deploy/kubernetes', file))), file).not.toThrow();
  });

  test.each(overlays)('%s: everything is in the namespace that refuses careless pods', (overlay) => {
    for (const resource of ofKind(manifests[overlay], 'Namespace')) expect(resource.metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    for (const resource of manifests[overlay].filter(({ kind }) => kind !== 'Namespace')) expect(resource.metadata.namespace, nameOf(resource)).toBe('asset-exchange');
  });

  test('one image, of this version, serves and migrates; a Job is named for its version', () => {
    const own = each.filter(([, , workload]) => labelsOf(workload)['app.kubernetes.io/part-of'] === 'asset-exchange');
    expect(own.length).toBe(2 * (5 + 4));
    for (const [, name, workload] of own) expect(containersOf(workload).map(({ image }) => image), name).toEqual([`asset-exchange:${version}`]);
    for (const [, name] of own.filter(([, name]) => name.startsWith('Job'))) expect(name).toMatch(new RegExp(`-${version.replaceAll('.', '-')}$`));
  });

  test('every service that has a database is migrated, by a pod that is given nothing but its address', () => {
    for (const overlay of overlays) {
      const withDatabase = services(overlay).map(({ metadata }) => metadata.name).filter((name) => 'DATABASE_URL' in environmentOf(overlay, name));
      const jobs = ofKind(manifests[overlay], 'Job').flatMap(containersOf);
      expect(jobs.map(({ args }) => args)).toEqual(withDatabase.map((name) => [`services/${name}/main.ts`, '--migrate']));
      expect(jobs.map((container) => list(container, 'env').map(({ name }) => name))).toEqual(withDatabase.map(() => ['DATABASE_URL']));
      const roles = [...read('deploy/postgres/roles.sql').matchAll(/^create role (\w+);/gm)].map(([, role]) => role);
      expect(roles).toEqual(withDatabase);
    }
  });
});

describe('a pod', () => {
  test.each(each)('%s, %s: has no token, no root and no system call that it does not need', (_overlay, _name, workload) => {
    expect(podOf(workload)).toMatchObject({
      automountServiceAccountToken: false, enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) expect(podOf(workload)).not.toHaveProperty(field);
    expect(Number(at(podOf(workload), 'securityContext.runAsUser'))).toBeGreaterThan(0);
  });

  test.each(each)('%s, %s: has a service account that has no token either', (overlay, _name, workload) => {
    expect(named(manifests[overlay], 'ServiceAccount', String(podOf(workload)['serviceAccountName']))).toMatchObject({ automountServiceAccountToken: false });
  });

  test.each(eachContainer)('%s, %s: can neither write its root nor gain rights', (_overlay, _name, container) => {
    expect(container['securityContext']).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
  });

  test.each(eachContainer)('%s, %s: asks for processor and memory, and has a bound of memory', (_overlay, _name, container) => {
    expect(container['resources']).toMatchObject({ requests: { cpu: expect.any(String), memory: expect.any(String) }, limits: { memory: expect.any(String) } });
  });

  test.each(eachContainer.filter(([, name]) => !name.startsWith('Job')))('%s, %s: is asked whether it has started, lives and is ready', (_overlay, _name, container) => {
    expect(container).toMatchObject({ startupProbe: expect.any(Object), livenessProbe: expect.any(Object), readinessProbe: expect.any(Object) });
    const ports = list(container, 'ports').map(({ name }) => name);
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) if (at(container, `${probe}.httpGet`)) expect(ports).toContain(at(container, `${probe}.httpGet.port`));
  });

  test('no service is restarted because another is away', () => {
    for (const service of overlays.flatMap(services)) {
      expect(containersOf(service).map((container) => [at(container, 'startupProbe.httpGet.path'), at(container, 'livenessProbe.httpGet.path'), at(container, 'readinessProbe.httpGet.path')])).toEqual([['/livez', '/livez', '/readyz']]);
    }
  });
});

/** Whether a NetworkPolicy is about a pod with these labels. */
function isAbout(policy: Resource, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries((at(policy, 'spec.podSelector.matchLabels') ?? {}) as Record<string, string>).every(([name, value]) => labels[name] === value);
}

/** What a pod is let out to, in words, beside the names that every pod may ask for. */
function reachOf(overlay: Overlay, labels: Readonly<Record<string, string>>): string[] {
  const policies = ofKind(manifests[overlay], 'NetworkPolicy').filter((policy) => isAbout(policy, labels) && (at(policy, 'spec.policyTypes') as string[]).includes('Egress'));
  return policies.filter((policy) => list(policy, 'spec.egress').length > 0).map(({ metadata }) => metadata.name).filter((name) => name !== 'names').sort();
}

describe('the network', () => {
  test.each(overlays)('%s: nothing is allowed that no policy names', (overlay) => {
    expect(ofKind(manifests[overlay], 'NetworkPolicy').map(({ spec }) => spec)).toContainEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
  });

  test.each([
    ['gateway', ['to-nats'], ['to-object-store']],
    ['policy', ['to-nats', 'to-postgres'], []],
    ['storage', ['to-nats', 'to-postgres'], ['to-object-store']],
    ['audit', ['to-nats', 'to-postgres'], []],
    ['importer', ['to-internet', 'to-nats', 'to-postgres'], ['to-object-store']],
  ])('%s reaches what it needs and nothing else', (service, everywhere, inProduction) => {
    const labels = labelsOf(named(manifests.small, 'Deployment', service)!);
    expect(reachOf('small', labels)).toEqual(everywhere);
    expect(reachOf('production', labelsOf(named(manifests.production, 'Deployment', service)!))).toEqual([...everywhere, ...inProduction].sort());
  });

  test('migrations reach the database alone, and the engines of the small overlay nothing at all', () => {
    for (const job of ofKind(manifests.small, 'Job')) expect(reachOf('small', labelsOf(job))).toEqual(['to-postgres']);
    for (const engine of ofKind(manifests.small, 'StatefulSet')) expect(reachOf('small', labelsOf(engine))).toEqual([]);
  });

  test.each(overlays)('%s: a port that is let in is one that its pods listen on', (overlay) => {
    for (const policy of ofKind(manifests[overlay], 'NetworkPolicy')) {
      const meant = workloads(overlay).filter((workload) => isAbout(policy, labelsOf(workload)));
      const listening = meant.flatMap(containersOf).flatMap((container) => list(container, 'ports')).map(({ containerPort }) => containerPort);
      // In production the engines are others' pods.
      if (meant.length > 0) for (const { port } of list(policy, 'spec.ingress').flatMap((rule) => list(rule, 'ports'))) expect(listening, `${policy.metadata.name} ${String(port)}`).toContain(port);
    }
  });

  test.each(overlays)('%s: a Service leads to a port that its pods have', (overlay) => {
    for (const service of ofKind(manifests[overlay], 'Service')) {
      const selector = at(service, 'spec.selector') as Record<string, string>;
      const ports = workloads(overlay).filter((workload) => workload.kind !== 'Job' && Object.entries(selector).every(([name, value]) => labelsOf(workload)[name] === value)).map((workload) => containersOf(workload).flatMap((container) => list(container, 'ports')).map(({ name }) => name));
      expect(ports.length, service.metadata.name).toBeGreaterThan(0);
      for (const { targetPort } of list(service, 'spec.ports')) for (const names of ports) expect(names, service.metadata.name).toContain(targetPort);
    }
  });

  test.each([
    '0.0.0.0', '10.96.0.1', '100.64.0.1', '100.100.100.200', '127.0.0.1', '168.63.129.16', '169.254.169.254', '169.254.170.2', '172.20.0.1', '192.0.0.192', '192.168.1.1', '198.18.0.1', '224.0.0.1', '255.255.255.255',
    '::1', '::ffff:10.0.0.1', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', 'fd00:ec2::254', 'fd20:ce::254', 'fc00::1', 'fe80::1', '2001::1', '2002:a9fe:a9fe::1', 'ff02::1',
  ])('the importer does not reach %s', (address) => {
    expect(internet(address)).toBe(false);
  });

  test.each(['1.1.1.1', '93.184.215.14', '172.32.0.1', '2606:4700:4700::1111', '2a00:1450:4001::1'])('the importer reaches %s', (address) => {
    expect(internet(address)).toBe(true);
  });

  test('the importer reaches the web’s ports and no other well-known one', () => {
    const ports = list(named(manifests.production, 'NetworkPolicy', 'to-internet'), 'spec.egress.0.ports');
    const open = (wanted: number) => ports.some(({ port, endPort }) => wanted === port || (typeof endPort === 'number' && wanted >= Number(port) && wanted <= endPort));
    expect([80, 443, 8_080].map(open)).toEqual([true, true, true]);
    expect([22, 25, 53, 445].map(open)).toEqual([false, false, false, false]);
  });
});

/** Whether the importer's way out leads to an address. */
function internet(address: string): boolean {
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  return list(named(manifests.production, 'NetworkPolicy', 'to-internet'), 'spec.egress.0.to').some((peer) => {
    const block = (ranges: readonly string[]) => {
      const found = new BlockList();
      for (const range of ranges) found.addSubnet(range.split('/')[0]!, Number(range.split('/')[1]), range.includes(':') ? 'ipv6' : 'ipv4');
      return found.check(address, family);
    };
    return isIPv4(String(at(peer, 'ipBlock.cidr')).split('/')[0]!) === (family === 'ipv4') && block([String(at(peer, 'ipBlock.cidr'))]) && !block(at(peer, 'ipBlock.except') as string[]);
  });
}

describe('production', () => {
  const names = services('production').map(({ metadata }) => metadata.name);
  const scalers = new Map(ofKind(manifests.production, 'HorizontalPodAutoscaler').map((scaler) => [String(at(scaler, 'spec.scaleTargetRef.name')), scaler.spec as { minReplicas: number; maxReplicas: number }]));
  const replicasOf = (name: string) => {
    const fixed = at(named(manifests.production, 'Deployment', name), 'spec.replicas') as number | undefined;
    return fixed === undefined ? [scalers.get(name)!.minReplicas, scalers.get(name)!.maxReplicas] as const : [fixed, fixed] as const;
  };

  test.each(names)('%s has two replicas or more, keeps all but one of them, and spreads them', (name) => {
    expect(replicasOf(name)[0]).toBeGreaterThanOrEqual(2);
    const deployment = named(manifests.production, 'Deployment', name)!;
    const budget = ofKind(manifests.production, 'PodDisruptionBudget').filter((each) => isAbout({ ...each, spec: { podSelector: at(each, 'spec.selector') } }, labelsOf(deployment)));
    expect(budget.map((each) => at(each, 'spec.maxUnavailable'))).toEqual([1]);
    expect(list(podOf(deployment), 'topologySpreadConstraints').map(({ topologyKey }) => topologyKey)).toEqual(['topology.kubernetes.io/zone', 'kubernetes.io/hostname']);
    expect(at(deployment, 'spec.strategy.rollingUpdate')).toEqual({ maxSurge: 1, maxUnavailable: 0 });
  });

  test('what is scaled is not also counted', () => {
    for (const name of scalers.keys()) expect(named(manifests.production, 'Deployment', name)!['spec']).not.toHaveProperty('replicas');
  });

  test('the database has a connection for every pool at its largest, a new replica and a migration beside it', () => {
    const cluster = named(manifests.production, 'Cluster', 'postgres');
    const roles = list(cluster, 'spec.managed.roles');
    for (const { name, connectionLimit } of roles) {
      const pool = Number(environmentOf('production', String(name))['DATABASE_POOL']);
      expect(Number(connectionLimit), String(name)).toBeGreaterThanOrEqual((replicasOf(String(name))[1] + 1) * pool + 1);
    }
    const all = roles.reduce((sum, { connectionLimit }) => sum + Number(connectionLimit), 0);
    expect(Number(at(cluster, 'spec.postgresql.parameters.max_connections'))).toBeGreaterThanOrEqual(all + 20);
  });

  test('the stream has as many copies as there are servers, each on disk before it is acknowledged', () => {
    const values = parse(read('deploy/kubernetes/overlays/production/nats/values.yaml')) as Fields;
    expect(environmentOf('production', 'audit')['EVENT_STREAM_REPLICAS']).toBe(String(at(values, 'config.cluster.replicas')));
    expect(at(values, 'config.jetstream.merge.sync_interval')).toBe('always');
    expect(read('deploy/nats/nats.conf')).toMatch(/^ {2}sync_interval: always$/m);
  });

  test('every NATS user has a password from the Secret that its service has', () => {
    const values = parse(read('deploy/kubernetes/overlays/production/nats/values.yaml')) as Fields;
    const wanted = names.map((name) => [`NATS_PASSWORD_${name.toUpperCase()}`, `${name}-nats`]).sort();
    const given = Object.entries(at(values, 'container.env') as Fields).filter(([name]) => name.startsWith('NATS_')).map(([name, value]) => [name, at(value, 'valueFrom.secretKeyRef.name')]);
    const small = list(containersOf(named(manifests.small, 'StatefulSet', 'nats')!)[0], 'env').map((entry) => [entry['name'], at(entry, 'valueFrom.secretKeyRef.name')]);
    expect(given.sort()).toEqual(wanted);
    expect(small.sort()).toEqual(wanted);
  });
});

/** As a set, whatever the order of resources and fields. */
function sorted(resources: readonly Resource[]): string[] {
  return resources.map((resource) => JSON.stringify(canonical(resource))).sort();
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, canonical(inner)]));
}
