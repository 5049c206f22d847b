/** Settings: one zod schema a service, read once from the environment; a bad one names itself and stops the start. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { tracingSettings } from './tracing.ts';

/** A setting was absent or wrong. `message` is one sentence for the person who starts the service. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Exit status of a service whose settings are wrong (EX_CONFIG): starting it again would not help. */
export const badSettingsExit = 78;

const wholeNumber = (text: string) => /^\d{1,15}$/.test(text);

/** A whole number within bounds, given as text. */
export function integerSetting(bounds: { min: number; max: number; default?: number }) {
  const number = z
    .string()
    .refine(wholeNumber, 'must be a whole number')
    .transform(Number)
    .refine((n) => n >= bounds.min && n <= bounds.max, `must be between ${bounds.min} and ${bounds.max}`)
    .meta({ allowed: `${bounds.min} to ${bounds.max}` });
  return bounds.default === undefined ? number : number.default(bounds.default);
}

/** A list separated by commas; empty when absent. */
export function listSetting(isGood: (item: string) => boolean, complaint: string) {
  return z
    .string()
    .transform((text) => text.split(',').map((item) => item.trim()))
    .refine((items) => items.every(isGood), complaint)
    .default([]);
}

/** Keys for signing, newest first: comma-separated, each 32 bytes or more in base64url. Old ones still verify. */
const secretSetting = z
  .string()
  .transform((text) => text.split(',').map((key) => Buffer.from(key.trim(), 'base64url')))
  .refine((keys) => keys.length > 0 && keys.every((key) => key.length >= 32), 'must be one or more base64url keys of at least 32 bytes, separated by commas')
  .describe('Keys that all tokens are made with, newest first, separated by commas: each 32 bytes or more in base64url');

/** The settings that every service has. */
export const commonSettings = {
  NATS_URL: z.string().regex(/^(nats|tls|ws|wss):\/\//, 'must start with nats:// or tls://').describe('Where NATS is, with the user and password of this service'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info').describe('The least level that is logged; `silent` logs nothing'),
  /** Where supervisors ask how the process is; nowhere when absent. */
  METRICS_PORT: integerSetting({ min: 0, max: 65_535 }).optional().describe('Port for `/metrics`, `/livez` and `/readyz`; none when absent'),
  /** How long a stop waits for work that is under way. Whoever stops the service must wait a little longer. */
  DRAIN_SECONDS: integerSetting({ min: 1, max: 86_400, default: 10 }).describe('How long a stop waits for work that is under way; whoever stops the service waits a little longer'),
  /** Set by the local stack: the service ends when its standard input does. */
  ...tracingSettings,
  AEX_EXIT_WITH_PARENT: z.enum(['0', '1']).default('0').describe('Set by the local stack alone: the service ends when its standard input does'),
};

export const databaseSettings = {
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, 'must start with postgres://').describe('The database, with the role of this service'),
  DATABASE_POOL: integerSetting({ min: 1, max: 200, default: 10 }).describe('Connections to the database of one process'),
};

export const secretSettings = { AEX_SECRET: secretSetting };

/** Whether clients reach the object store. Policy plans by it, and storage offers it for the files of folders. */
export const directSettings = {
  DIRECT_LANE: z.enum(['on', 'off'], 'must be on or off').default('off').describe('Whether clients may send parts to the object store themselves; the same for policy and storage'),
};

export const baseUrlSettings = {
  BASE_URL: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .transform((url) => url.replace(/\/+$/, '')).describe('The address that callers use, without a path; it is in every link that is handed out'),
};

/** A setting as the operator sees it. */
export interface SettingFacts {
  readonly name: string;
  readonly required: boolean;
  /** What holds when it is absent; none when nothing does. */
  readonly default?: unknown;
  /** Bounds, or the words to choose from; none when any text of the right form will do. */
  readonly allowed?: string;
  readonly description?: string;
}

/** What a service can be set to, for the manifests and documents that must name the same. */
export function describeSettings(shape: z.ZodRawShape): SettingFacts[] {
  return Object.entries(shape).map(([name, schema]) => {
    const absent = z.safeParse(schema, undefined);
    const [allowed, description] = [allowedOf(schema), z.globalRegistry.get(schema as z.ZodType)?.description];
    return { name, required: !absent.success, ...(absent.data !== undefined && { default: absent.data }), ...(allowed && { allowed }), ...(description && { description }) };
  });
}

/** What a schema that may be wrapped as optional, or with a default, lets through. */
function allowedOf(schema: z.core.$ZodType): string | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return allowedOf(schema.unwrap());
  if (schema instanceof z.ZodEnum) return schema.options.join(', ');
  return z.globalRegistry.get(schema)?.['allowed'] as string | undefined;
}

/**
 * Reads a service's settings from the environment. Empty counts as absent.
 * `<NAME>_FILE` names a file that holds the value of `<NAME>`, for secrets that no environment should show.
 * @throws SettingsError that names every bad setting.
 */
export function readSettings<S extends z.ZodRawShape>(shape: S): z.output<z.ZodObject<S>> {
  const given = Object.keys(shape).map((name) => ({ name, ...readSetting(name) }));
  const unread = given.flatMap(({ complaint }) => complaint ?? []);
  const values = Object.fromEntries(given.flatMap(({ name, value }) => (value ? [[name, value]] : [])));
  const result = z.object(shape).safeParse(values);
  if (result.success && unread.length === 0) return result.data;
  const named = new Set(given.flatMap(({ name, complaint }) => (complaint ? [name] : [])));
  const complaints = (result.error?.issues ?? []).map((issue) => ({ name: issue.path.join('.'), message: issue.message })).filter(({ name }) => !named.has(name));
  const bad = complaints.map(({ name, message }) => (name in values ? `${name} ${message}` : `${name} must be set`));
  throw new SettingsError(`Bad settings: ${[...unread, ...bad].join('; ')}.`);
}

/** A setting's text from the environment or from the file that it names there; or what is wrong with it. */
function readSetting(name: string): { value?: string | undefined; complaint?: string } {
  const value = process.env[name];
  const file = process.env[`${name}_FILE`];
  if (!file) return { value };
  if (value) return { complaint: `${name} and ${name}_FILE are both set` };
  try {
    return { value: readFileSync(file, 'utf8').trim() };
  } catch {
    return { complaint: `${name}_FILE names a file that cannot be read` };
  }
}
