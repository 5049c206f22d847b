// Writes the users of NATS and their permissions as the server's own configuration, and as values of its Helm chart: `node deploy/nats/authorization.ts`.
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { permissionsOf, services } from './permissions.ts';

const notice = '# Written by `node deploy/nats/authorization.ts` from the contracts and the calls in the code; a test holds them together.';
const root = resolve(import.meta.dirname, '../..');

/** The variable of the server's environment that holds a service's password. */
const passwordVariable = (service: string) => `NATS_PASSWORD_${service.toUpperCase()}`;

/** Path -> text of what is written. */
export function authorizationFiles(): Readonly<Record<string, string>> {
  return {
    'deploy/nats/authorization.conf': `${notice}\n# Passwords come from the server's environment; each begins with a letter, or the server takes it for a number.\nauthorization {\n  users: [\n${services.map(userBlock).join('')}  ]\n}\n`,
    'deploy/kubernetes/overlays/production/nats/authorization.values.yaml': `${notice}\nconfig:\n  merge:\n    authorization:\n      users:\n${services.map(userValues).join('')}`,
  };
}

function userBlock(service: string): string {
  const list = (subjects: readonly string[]) => `[\n${subjects.map((subject) => `          "${subject}"\n`).join('')}        ]`;
  const { publish, subscribe } = permissionsOf(service);
  return `    {
      user: ${service}
      password: $${passwordVariable(service)}
      permissions {
        publish: ${list(publish)}
        subscribe: ${list(subscribe)}
      }
    }
`;
}

function userValues(service: string): string {
  const list = (subjects: readonly string[]) => subjects.map((subject) => `              - "${subject}"\n`).join('');
  const { publish, subscribe } = permissionsOf(service);
  return `        - user: ${service}
          # The chart writes what stands between << and >> without quotes: a variable of the server.
          password: "<< $${passwordVariable(service)} >>"
          permissions:
            publish:
${list(publish)}            subscribe:
${list(subscribe)}`;
}

if (process.argv[1] === import.meta.filename) {
  for (const [path, text] of Object.entries(authorizationFiles())) writeFileSync(join(root, path), text);
}
