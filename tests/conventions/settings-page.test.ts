/** docs/settings.md is what the schemas say: a setting that nobody can look up might as well not be there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { allSettings, settingsPage } from '../../deploy/settings-table.ts';
import { root } from '../support/source-files.ts';

let settings: Awaited<ReturnType<typeof allSettings>>;
beforeAll(async () => { settings = await allSettings(); }, 30_000);

test('every setting says what it is for', () => {
  const silent = [...settings].flatMap(([service, facts]) => facts.filter(({ description }) => !description).map(({ name }) => `${service}: ${name}`));
  expect(silent).toEqual([]);
});

test('docs/settings.md is written from the schemas: node deploy/settings-table.ts', () => {
  expect(readFileSync(join(root, 'docs/settings.md'), 'utf8')).toBe(settingsPage(settings));
});
