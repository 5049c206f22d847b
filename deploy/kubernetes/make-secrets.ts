// Prints every Secret that the manifests refer to, with fresh random values: `node deploy/kubernetes/make-secrets.ts small | kubectl create -f -`.
// Made once: `create` refuses what is there already, and nothing is written to a file. For `production` the database is spoken to by TLS.
import { randomBytes } from 'node:crypto';

const namespace = 'asset-exchange';
/** The services with rows, and those without. */
const withDatabase = ['policy', 'storage', 'audit', 'importer'];
const services = ['gateway', ...withDatabase];

export interface Secret {
  readonly apiVersion: 'v1';
  readonly kind: 'Secret';
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly type: string;
  readonly stringData: Readonly<Record<string, string>>;
}

/** All Secrets of an overlay. */
export function makeSecrets(overlay: 'small' | 'production'): Secret[] {
  const parameters = overlay === 'production' ? '?sslmode=require' : '';
  return [
    secret('exchange-secret', { AEX_SECRET: randomBytes(32).toString('base64url') }),
    secret('first-owner', { FIRST_OWNER_EMAIL: 'owner@localhost', FIRST_OWNER_PASSWORD: password() }),
    ...services.map((name) => natsSecret(name, password())),
    ...withDatabase.map((name) => databaseSecret(name, password(), parameters)),
    ...(overlay === 'small' ? [secret('postgres-superuser', { password: password() })] : []),
  ];
}

function natsSecret(service: string, value: string): Secret {
  return secret(`${service}-nats`, { password: value, NATS_URL: `nats://${service}:${value}@nats:4222` });
}

/** The form that the database operator takes a role's password in, and the address that the service takes. */
function databaseSecret(service: string, value: string, parameters: string): Secret {
  const data = { username: service, password: value, DATABASE_URL: `postgres://${service}:${value}@postgres-rw:5432/aex${parameters}` };
  return secret(`${service}-database`, data, 'kubernetes.io/basic-auth');
}

function secret(name: string, stringData: Record<string, string>, type = 'Opaque'): Secret {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, type, stringData };
}

/** Begins with a letter: nats-server would take some others for a number. */
function password(): string {
  return `p${randomBytes(24).toString('hex')}`;
}

if (process.argv[1] === import.meta.filename) {
  const [overlay] = process.argv.slice(2);
  if (overlay !== 'small' && overlay !== 'production') {
    process.stderr.write('Say for which overlay: small or production.\n');
    process.exit(64);
  }
  process.stdout.write(`${JSON.stringify({ apiVersion: 'v1', kind: 'List', items: makeSecrets(overlay) }, undefined, 2)}\n`);
}
