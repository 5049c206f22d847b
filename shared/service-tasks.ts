/** What `node services/<name>/main.ts <task>` does instead of serving. Each task ends by itself, and may be done again. */
import { pathToFileURL } from 'node:url';
import type { z } from 'zod';
import { openDatabase } from './db.ts';
import { makeLogger } from './log.ts';
import { commonSettings, databaseSettings, describeSettings, readSettings, SettingsError } from './settings.ts';

interface Service {
  readonly name: string;
  readonly shape: z.ZodRawShape;
}

const tasks: Readonly<Record<string, (service: Service) => Promise<void>>> = {
  '--migrate': migrate,
  '--settings': async ({ shape }) => say(describeSettings(shape)),
  '--check-settings': async ({ name, shape }) => {
    readSettings(shape);
    say(`The settings of ${name} are good.`);
  },
};

/** @throws SettingsError for a task that there is not: a misspelt one must not start a service. */
export async function runTask(task: string, service: Service): Promise<void> {
  const work = tasks[task];
  if (!work) throw new SettingsError(`There is no task ${task}: it is one of ${Object.keys(tasks).join(', ')}.`);
  await work(service);
}

/** Brings the service's schema up to date. Needs no NATS and no secret of the service; waits for another that is at it. */
async function migrate({ name, shape }: Service): Promise<void> {
  if (!('DATABASE_URL' in shape)) throw new SettingsError(`${name} has no database.`);
  const { DATABASE_URL: url, LOG_LEVEL: level } = readSettings({ DATABASE_URL: databaseSettings.DATABASE_URL, LOG_LEVEL: commonSettings.LOG_LEVEL });
  const log = makeLogger(name, level);
  const database = openDatabase(url, 1, log);
  await database.migrate(new URL('./store/migrations/', pathToFileURL(process.argv[1]!)));
  await database.close();
  log.info('the schema is current');
}

function say(fact: unknown): void {
  process.stdout.write(`${typeof fact === 'string' ? fact : JSON.stringify(fact, undefined, 2)}\n`);
}
