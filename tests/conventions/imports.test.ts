/** Who may import whom: no service reaches into another, and each room touches only what it may. */
import { describe, expect, test } from 'vitest';
import { localImports, packageImports, sourceFiles, type SourceFile } from '../support/source-files.ts';

const services = sourceFiles('services');
const product = [...services, ...sourceFiles('shared', 'web')];
const tested = (files: readonly SourceFile[]) => files.filter(({ path }) => !path.endsWith('.test.ts'));
const serviceOf = (path: string) => /^services\/(\w+)\//.exec(path)?.[1];
const roomOf = (path: string) => /^services\/\w+\/(\w+)\//.exec(path)?.[1];

/** Rooms of its own service that a room may import. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  domain: ['domain'],
  store: ['store', 'domain'],
  outside: ['outside', 'domain'],
  handlers: ['handlers', 'domain', 'store', 'outside'],
};

/** What a domain function may not use: the clock, I/O, other processes. Hashing is arithmetic; passwords say why they are there. */
const impure = ['nats', 'fastify', 'postgres', 'pino', 'node:fs', 'node:fs/promises', 'node:net', 'node:http', 'node:timers/promises', 'node:child_process'];

describe('imports', () => {
  test('no service imports another', () => {
    const crossing = services.flatMap((file) => localImports(file)
      .filter((target) => serviceOf(target) !== undefined && serviceOf(target) !== serviceOf(file.path))
      .map((target) => `${file.path} -> ${target}`));
    expect(crossing).toEqual([]);
  });

  test('shared and web import no service, and the product imports no test and no launcher', () => {
    const crossing = tested(product).flatMap((file) => localImports(file)
      .filter((target) => /^(tests|deploy|bench)\//.test(target) || (serviceOf(file.path) === undefined && target.startsWith('services/')))
      .map((target) => `${file.path} -> ${target}`));
    expect(crossing).toEqual([]);
  });

  test('each room imports only the rooms it may', () => {
    const crossing = tested(services).flatMap((file) => {
      const allowed = mayImport[roomOf(file.path) ?? ''];
      if (!allowed) return [];
      return localImports(file)
        .filter((target) => roomOf(target) !== undefined && !allowed.includes(roomOf(target)!))
        .map((target) => `${file.path} -> ${target}`);
    });
    expect(crossing).toEqual([]);
  });

  test('a domain has no I/O and no clock', () => {
    const impurities = tested(services).filter(({ path }) => roomOf(path) === 'domain').flatMap((file) => [
      ...packageImports(file).filter((name) => impure.includes(name)).map((name) => `${file.path} imports ${name}`),
      ...(/Date\.now\(|new Date\(\)/.test(file.text) ? [`${file.path} reads the clock`] : []),
    ]);
    expect(impurities).toEqual([]);
  });

  test('contracts know nothing but zod and each other', () => {
    const foreign = sourceFiles('shared/contracts').flatMap((file) => [
      ...packageImports(file).filter((name) => name !== 'zod').map((name) => `${file.path} imports ${name}`),
      ...localImports(file).filter((target) => !/^shared\/(contracts\/|contract\.ts|events\.ts)/.test(target)).map((target) => `${file.path} -> ${target}`),
    ]);
    expect(foreign).toEqual([]);
  });

  test('the environment is read in shared/settings.ts only', () => {
    const readers = tested(product).filter(({ path, text }) => path !== 'shared/settings.ts' && text.includes('process.env'));
    expect(readers.map(({ path }) => path)).toEqual([]);
  });

  test('only shared/rpc.ts answers requests', () => {
    const responders = tested(product).filter(({ path, text }) => path !== 'shared/rpc.ts' && /\.respond\(/.test(text));
    expect(responders.map(({ path }) => path)).toEqual([]);
  });

  test('specs speak HTTP only', () => {
    const reaching = sourceFiles('tests/spec').flatMap((file) => localImports(file)
      .filter((target) => !target.startsWith('tests/'))
      .map((target) => `${file.path} -> ${target}`));
    expect(reaching).toEqual([]);
  });
});
