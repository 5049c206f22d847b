// Gives each service its login role and its schema in the one database, and nobody anything else.
import postgres from 'postgres';
import { derivePassword } from './secrets.ts';

/** The services that keep rows; each has a role and a schema of its own name. */
export const databaseServices = ['policy', 'storage', 'audit', 'importer'] as const;
export const databaseName = 'aex';

/** The address at which a service, or the administrator, reaches the database. */
export function databaseAddress(user: string, password: string, port: number, database = databaseName): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
}

/** The password of a service's role. */
export function rolePassword(secret: string, service: string): string {
  return derivePassword(secret, `database role ${service}`);
}

/** Makes the database, the roles and the schemas as they should be; changes nothing where they are. */
export async function provisionDatabase(adminUrl: (database: string) => string, secret: string): Promise<void> {
  await withClient(adminUrl('postgres'), async (sql) => {
    const [found] = await sql`SELECT 1 FROM pg_database WHERE datname = ${databaseName}`;
    if (!found) await sql.unsafe(`CREATE DATABASE ${databaseName}`);
    await sql.unsafe('REVOKE ALL ON DATABASE postgres FROM PUBLIC');
    for (const service of databaseServices) await provisionRole(sql, service, rolePassword(secret, service));
  });
  await withClient(adminUrl(databaseName), async (sql) => {
    await sql.unsafe(`REVOKE ALL ON DATABASE ${databaseName} FROM PUBLIC`);
    await sql.unsafe('REVOKE ALL ON SCHEMA public FROM PUBLIC');
    for (const service of databaseServices) await provisionSchema(sql, service);
  });
}

// Names are this file's constants and passwords base64url, so neither needs quoting; DDL takes no parameters.
async function provisionRole(sql: postgres.Sql, role: string, password: string): Promise<void> {
  const [found] = await sql`SELECT 1 FROM pg_roles WHERE rolname = ${role}`;
  await sql.unsafe(`${found ? 'ALTER' : 'CREATE'} ROLE ${role} LOGIN PASSWORD '${password}'`);
}

async function provisionSchema(sql: postgres.Sql, role: string): Promise<void> {
  await sql.unsafe(`GRANT CONNECT ON DATABASE ${databaseName} TO ${role}`);
  await sql.unsafe(`CREATE SCHEMA IF NOT EXISTS ${role} AUTHORIZATION ${role}`);
  await sql.unsafe(`ALTER ROLE ${role} IN DATABASE ${databaseName} SET search_path = ${role}`);
}

async function withClient(url: string, work: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => undefined });
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
