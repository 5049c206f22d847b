/** Reads the project's own source, for the tests that hold it to its conventions. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '../..');

export interface SourceFile {
  /** Relative to the project's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** Every TypeScript file below the folders. */
export function sourceFiles(...folders: string[]): SourceFile[] {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => ({ path: join(folder, name), text: readFileSync(join(root, folder, name), 'utf8') })));
}

/** What a file imports, as it is written there. */
function importsOf({ text }: SourceFile): string[] {
  return [...text.matchAll(/^(?:import|export)\b[^'"]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm)]
    .map(([, from, bare, dynamic]) => (from ?? bare ?? dynamic)!);
}

/** The files of the project that a file imports. */
export function localImports(file: SourceFile): string[] {
  return importsOf(file).filter((name) => name.startsWith('.')).map((name) => relative(root, resolve(root, dirname(file.path), name)));
}

/** The packages and built-in modules that a file imports. */
export function packageImports(file: SourceFile): string[] {
  return importsOf(file).filter((name) => !name.startsWith('.'));
}
