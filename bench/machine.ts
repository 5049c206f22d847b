/** The facts without which a figure means nothing. */
import { cpus, totalmem, release } from 'node:os';
import { connect } from 'nats';
import postgres from 'postgres';
import type { Stack } from '../deploy/local/stack.ts';

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  readonly postgres: string;
  readonly nats: string;
}

export async function readMachine(stack: Stack): Promise<Machine> {
  const processors = cpus();
  return {
    processor: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGiB: Math.round(totalmem() / 1_024 ** 3),
    system: `${process.platform} ${release().split('-')[0]} ${process.arch}`,
    node: process.version.slice(1),
    postgres: await postgresVersion(stack.databaseUrl),
    nats: await natsVersion(stack.natsUrl),
  };
}

export function describeMachine(machine: Machine): string {
  const { processor, cores, memoryGiB, system, node } = machine;
  return `${cores} cores (${processor}), ${memoryGiB} GiB, ${system}; Node ${node}, PostgreSQL ${machine.postgres}, nats-server ${machine.nats}`;
}

async function postgresVersion(url: string): Promise<string> {
  const sql = postgres(url, { max: 1 });
  try {
    const [row] = await sql<{ server_version: string }[]>`show server_version`;
    return row!.server_version;
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function natsVersion(url: string): Promise<string> {
  const { host, username, password } = new URL(url);
  const connection = await connect({ servers: host, ...(username && { user: decodeURIComponent(username), pass: decodeURIComponent(password) }) });
  const version = connection.info?.version ?? 'unknown';
  await connection.close();
  return version;
}
