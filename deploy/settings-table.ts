// Writes docs/settings.md from the schemas of the services' settings: `node deploy/settings-table.ts`.
import { execFile } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { SettingFacts } from '../shared/settings.ts';

const root = resolve(import.meta.dirname, '..');
const settingsPath = join(root, 'docs/settings.md');
const services = readdirSync(join(root, 'services')).sort();

const head = `# Settings

Written by \`node deploy/settings-table.ts\` from the schemas in \`services/*/main.ts\`; a test holds the two together.

Every service reads its settings from the environment, once, when it starts. What is empty counts as absent. A setting that is wrong stops the start: one sentence that names it, and exit status 78.
\`node services/<name>/main.ts --settings\` prints a service's own as JSON, \`--check-settings\` tries those of the environment. Names end in their unit. What to do with the secrets among them is in [operating.md](operating.md).

| Setting | Services | Default | Allowed | Meaning |
|---|---|---|---|---|
`;

async function settingsOf(service: string): Promise<SettingFacts[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [`services/${service}/main.ts`, '--settings'], { cwd: root });
  return JSON.parse(stdout) as SettingFacts[];
}

/** Service -> its settings, as its process tells them. */
export async function allSettings(): Promise<ReadonlyMap<string, SettingFacts[]>> {
  return new Map(await Promise.all(services.map(async (service) => [service, await settingsOf(service)] as const)));
}

/** The page: a line for each setting, by name; services that differ in one have a line each. */
export function settingsPage(settings: ReadonlyMap<string, SettingFacts[]>): string {
  const lines = new Map<string, string[]>();
  for (const [service, facts] of settings) {
    for (const fact of facts) {
      const line = JSON.stringify(fact);
      lines.set(line, [...(lines.get(line) ?? []), service]);
    }
  }
  const rows = [...lines].map(([line, names]) => [JSON.parse(line) as SettingFacts, names] as const);
  return head + rows.sort(([a], [b]) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)).map(([fact, names]) => row(fact, names)).join('');
}

function row({ name, required, allowed = '', description = '', ...fact }: SettingFacts, names: readonly string[]): string {
  const inUnit = (text: string) => (name.endsWith('_BYTES') ? text.replace(/\d+/g, readable) : text);
  const cells = [`\`${name}\``, names.length === services.length ? 'all' : names.join(', '), required ? '**required**' : inUnit(textOf(fact.default)), inUnit(allowed), description];
  return `| ${cells.join(' | ')} |\n`;
}

const units = [' B', ' KiB', ' MiB', ' GiB', ' TiB'];

/** `10 GiB` for a number of bytes that is a whole one of some unit. */
function readable(digits: string): string {
  const power = units.findLastIndex((_, index) => Number(digits) % 1_024 ** index === 0);
  return `${Number(digits) / 1_024 ** power}${units[power]}`;
}

function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return value === undefined ? '' : String(value);
  const { limit, window } = value as { limit?: number; window?: number };
  return limit === undefined ? '' : `${limit}/${window}`;
}

if (process.argv[1] === import.meta.filename) writeFileSync(settingsPath, settingsPage(await allSettings()));
