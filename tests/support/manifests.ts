/** The overlays as they would be applied, and short ways to what is in them. */
import { join, resolve } from 'node:path';
import { render, type Fields, type Resource } from './kustomize.ts';

export const root = resolve(import.meta.dirname, '../..');
export const overlays = ['small', 'production'] as const;
export type Overlay = (typeof overlays)[number];

export const folderOf = (overlay: Overlay) => join(root, 'deploy/kubernetes/overlays', overlay);
export const manifests: Readonly<Record<Overlay, readonly Resource[]>> = { small: render(folderOf('small')), production: render(folderOf('production')) };

/** What is at a path such as `spec.template.spec`; lists have indices. */
export function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, name) => (inner as Fields | undefined)?.[name], value);
}

export const list = (value: unknown, path: string) => (at(value, path) ?? []) as Fields[];
export const named = (resources: readonly Resource[], kind: string, name: string) => resources.find((each) => each.kind === kind && each.metadata.name === name);
export const ofKind = (resources: readonly Resource[], ...kinds: string[]) => resources.filter(({ kind }) => kinds.includes(kind));
export const nameOf = (resource: Resource) => `${resource.kind} ${resource.metadata.name}`;

/** Whatever makes pods. */
export const workloads = (overlay: Overlay) => ofKind(manifests[overlay], 'Deployment', 'StatefulSet', 'Job');
export const podOf = (workload: Resource) => at(workload, 'spec.template.spec') as Fields;
export const labelsOf = (workload: Resource) => at(workload, 'spec.template.metadata.labels') as Readonly<Record<string, string>>;
export const containersOf = (workload: Resource) => list(workload, 'spec.template.spec.containers');
export const services = (overlay: Overlay) => ofKind(manifests[overlay], 'Deployment');

/** Every Secret that an overlay's pods are given something from: `name/key`. */
export function secretsOf(overlay: Overlay, { optional }: { optional: boolean }): string[] {
  const references = workloads(overlay).flatMap(containersOf).flatMap((container) => list(container, 'env')).flatMap((entry) => {
    const reference = at(entry, 'valueFrom.secretKeyRef') as { name: string; key: string; optional?: boolean } | undefined;
    return reference && (reference.optional ?? false) === optional ? [`${reference.name}/${reference.key}`] : [];
  });
  return [...new Set(references)].sort();
}

/** A service's environment as its pod has it; `secret` stands in place of what comes from a Secret. */
export function environmentOf(overlay: Overlay, service: string, secret: (name: string) => string = () => 'secret'): Record<string, string> {
  const [container] = containersOf(named(manifests[overlay], 'Deployment', service)!);
  const configuration = (name: string) => at(named(manifests[overlay], 'ConfigMap', name), 'data') as Record<string, string>;
  const own = list(container, 'env').map((entry) => {
    const map = at(entry, 'valueFrom.configMapKeyRef') as { name: string; key: string } | undefined;
    return [entry['name'], map ? configuration(map.name)[map.key] : (entry['value'] ?? secret(String(entry['name'])))] as const;
  });
  const settings = list(container, 'envFrom').map((source) => configuration(String(at(source, 'configMapRef.name'))));
  return Object.assign({}, ...settings, Object.fromEntries(own)) as Record<string, string>;
}
