// Gives every container of deploy/compose.yaml its secrets and folders, each in a volume of its own. One secret is random, made at the first start;
// all others follow from it, so a start that was cut off, or a later one, writes the same again. `show-owner` prints the first owner's account instead.
import { chown, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { derivePassword, keepSecret } from '../local/secrets.ts';

/** User ids: the exchange's image (NATS and the object store are run as it, too), and PostgreSQL's. */
const exchange = 65_532;
const postgres = 999;
const withDatabase = ['policy', 'storage', 'audit', 'importer'];
const services = ['gateway', ...withDatabase];
/** Those that sign, or verify what is signed. */
const signing = ['policy', 'storage', 'audit'];
const deploy = resolve(import.meta.dirname, '..');

export interface MadeFile {
  /** Volume and name within it. */
  readonly path: string;
  readonly text: string;
  readonly user: number;
}

/** Every file that is derived from the secret. */
export async function filesFrom(secret: string): Promise<MadeFile[]> {
  const of = (purpose: string) => derivePassword(secret, purpose);
  const configuration = (name: string) => readFile(join(deploy, name), 'utf8');
  const authorization = (await configuration('nats/authorization.conf')).replace(/\$NATS_PASSWORD_(\w+)/g, (_, service: string) => `"${of(`nats ${service.toLowerCase()}`)}"`);
  const passwords = (await configuration('postgres/passwords.sql')).replace(/\\getenv (\w+) \w+/g, (_, role: string) => `\\set ${role} '${of(`database ${role}`)}'`);
  const made = (user: number, files: Record<string, string>) => Object.entries(files).map(([path, text]) => ({ path, text, user }));
  return [
    ...services.flatMap((service) => made(exchange, { [`${service}/NATS_URL`]: `nats://${service}:${of(`nats ${service}`)}@nats:4222` })),
    ...withDatabase.flatMap((service) => made(exchange, { [`${service}/DATABASE_URL`]: `postgres://${service}:${of(`database ${service}`)}@postgres:5432/aex` })),
    ...signing.flatMap((service) => made(exchange, { [`${service}/AEX_SECRET`]: of('signatures') })),
    ...['storage', 's3'].flatMap((reader) => made(exchange, { [`${reader}/S3_ACCESS_KEY_ID`]: 'asset-exchange', [`${reader}/S3_SECRET_ACCESS_KEY`]: of('the object store') })),
    ...made(exchange, {
      'policy/FIRST_OWNER_PASSWORD': of('the first owner'),
      'nats/nats.conf': await configuration('nats/nats.conf'), 'nats/authorization.conf': authorization,
      'proxy/haproxy.cfg': await configuration('compose/haproxy.cfg'),
    }),
    ...made(postgres, { 'postgres/10-roles.sql': await configuration('postgres/roles.sql'), 'postgres/20-passwords.sql': passwords, 'postgres/superuser-password': of('database postgres') }),
  ];
}

/** Folders of data that their users write, innermost first: root, without rights over others' folders, makes nothing below one that it gave away. */
const dataFolders = [['data/s3/exchange', exchange], ['data/s3', exchange], ['data/nats', exchange], ['data/postgres', postgres]] as const;

async function make(root: string): Promise<void> {
  for (const { path, text, user } of await filesFrom(await keepSecret(join(root, 'secret/secret')))) await put(join(root, path), text, user);
  for (const [folder, user] of dataFolders) {
    await mkdir(join(root, folder), { recursive: true });
    await chown(join(root, folder), user, user);
  }
}

// Renamed into place: whoever runs already may be reading.
async function put(path: string, text: string, user: number): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o400, flush: true });
  await chown(`${path}.new`, user, user);
  await rename(`${path}.new`, path);
}

/** As `npm start` writes it to .data/local.json. */
async function showOwner(root: string): Promise<void> {
  const owner = { email: process.env['FIRST_OWNER_EMAIL'], password: derivePassword(await keepSecret(join(root, 'secret/secret')), 'the first owner') };
  process.stdout.write(`${JSON.stringify({ baseUrl: process.env['BASE_URL'], owner }, undefined, 2)}\n`);
}

if (process.argv[1] === import.meta.filename) {
  const [task] = process.argv.slice(2);
  if (task === undefined) await make('/made');
  else if (task === 'show-owner') await showOwner('/made');
  else {
    process.stderr.write('There is one task beside making the secrets: show-owner.\n');
    process.exit(64);
  }
}
