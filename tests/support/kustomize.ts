/** Renders a kustomization as `kubectl kustomize` does, as far as ours go: so that they are held to their promises where there is no kubectl. Where there is one, a test holds the two together. */
import { readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

export type Fields = { readonly [name: string]: unknown };

export interface Resource extends Fields {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> };
}

interface Generator {
  readonly name: string;
  readonly behavior?: 'merge';
  readonly envs?: readonly string[];
  readonly files?: readonly string[];
  readonly literals?: readonly string[];
  readonly options?: { readonly labels?: Readonly<Record<string, string>> };
}

interface Kustomization {
  readonly namespace?: string;
  readonly nameSuffix?: string;
  readonly resources?: readonly string[];
  readonly components?: readonly string[];
  readonly configMapGenerator?: readonly Generator[];
  readonly patches?: readonly { readonly path: string; readonly target?: { readonly kind: string; readonly name?: string } }[];
  readonly images?: readonly { readonly name: string; readonly newTag: string }[];
}

/** By which field the items of a list are told apart when two lists are merged; any other list is replaced. */
const mergeKeys: Readonly<Record<string, string>> = { containers: 'name', env: 'name', volumes: 'name', volumeMounts: 'mountPath', ports: 'containerPort', topologySpreadConstraints: 'topologyKey' };

/** The resources of a folder; a component changes those that it is given. Names of ConfigMaps are without their hash. */
export function render(folder: string, given: readonly Resource[] = []): Resource[] {
  const read = (path: string) => readFileSync(join(folder, path), 'utf8');
  const kustomization = parse(read('kustomization.yaml')) as Kustomization;
  let all = [...given, ...(kustomization.resources ?? []).flatMap((path) => (statSync(join(folder, path)).isDirectory() ? render(join(folder, path)) : documentsOf(read(path))))];
  for (const path of kustomization.components ?? []) all = render(join(folder, path), all);
  for (const generator of kustomization.configMapGenerator ?? []) all = generate(all, generator, read);
  for (const { path, target } of kustomization.patches ?? []) all = patch(all, documentsOf(read(path))[0]!, target);
  return all.map((resource) => finish(resource, kustomization));
}

export function documentsOf(text: string): Resource[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors[0]) throw document.errors[0];
    return document.toJS() as Resource;
  });
}

function generate(all: readonly Resource[], generator: Generator, read: (path: string) => string): Resource[] {
  const lines = [...(generator.envs ?? []).flatMap((path) => read(path).split('\n').filter((line) => line && !line.startsWith('#'))), ...(generator.literals ?? [])];
  const data = Object.fromEntries([
    ...lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    ...(generator.files ?? []).map((path) => [basename(path), read(path)]),
  ]) as Record<string, string>;
  const made: Resource = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: generator.name, ...generator.options }, data };
  if (generator.behavior !== 'merge') return [...all, made];
  if (!all.some((resource) => isSame(resource, made))) throw new Error(`there is no ConfigMap ${generator.name} to merge with`);
  return all.map((resource) => (isSame(resource, made) ? merge(resource, { data }) as Resource : resource));
}

const isSame = (one: Resource, other: Resource) => one.kind === other.kind && one.metadata.name === other.metadata.name;

function patch(all: readonly Resource[], change: Resource, target?: { kind: string; name?: string }): Resource[] {
  const isMeant = (resource: Resource) => (target ? resource.kind === target.kind && new RegExp(`^(${target.name ?? '.*'})$`).test(resource.metadata.name) : isSame(resource, change));
  if (!all.some(isMeant)) throw new Error(`the patch ${change.metadata.name} changes nothing`);
  return all.map((resource) => (isMeant(resource) ? merge(resource, { ...change, metadata: { ...change.metadata, name: resource.metadata.name } }) as Resource : resource));
}

function merge(base: unknown, change: unknown, field = ''): unknown {
  const key = mergeKeys[field];
  if (Array.isArray(base) && Array.isArray(change) && key) return mergeLists(base as Fields[], change as Fields[], key);
  if (!isFields(base) || !isFields(change)) return change;
  const names = [...new Set([...Object.keys(base), ...Object.keys(change)])];
  return Object.fromEntries(names.map((name) => [name, name in base && name in change ? merge(base[name], change[name], name) : (change[name] ?? base[name])]));
}

function mergeLists(base: readonly Fields[], change: readonly Fields[], key: string): unknown[] {
  const found = (item: Fields) => change.find((other) => other[key] === item[key]);
  return [...base.map((item) => merge(item, found(item) ?? item)), ...change.filter((item) => !base.some((other) => other[key] === item[key]))];
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function finish(resource: Resource, { namespace, nameSuffix = '', images = [] }: Kustomization): Resource {
  const metadata = { ...resource.metadata, name: resource.metadata.name + nameSuffix, ...(namespace && resource.kind !== 'Namespace' && { namespace }) };
  const text = images.reduce((json, { name, newTag }) => json.replaceAll(`"image":"${name}"`, `"image":"${name}:${newTag}"`), JSON.stringify({ ...resource, metadata }));
  return JSON.parse(text) as Resource;
}
