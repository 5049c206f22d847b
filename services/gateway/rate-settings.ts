/** The settings of rate limits: one a class of requests, by caller. Authenticated callers may send some times as much as an address. */
import { z } from 'zod';
import { rateClasses, type RateClass } from '../../shared/contract.ts';
import { integerSetting } from '../../shared/settings.ts';
import { readRateLimit, type RateLimit } from './domain/rate-limit.ts';

export interface Rates {
  /** A class without one is not limited. */
  readonly limits: Readonly<Partial<Record<RateClass, RateLimit>>>;
  readonly knownTimes: number;
  readonly maxCallers: number;
}

function rateSetting(normally: RateLimit) {
  return z
    .string()
    .refine((text) => text === 'off' || readRateLimit(text) !== undefined, 'must be requests/seconds such as 600/60, or off')
    // Not undefined: a default would take its place.
    .transform((text) => readRateLimit(text) ?? null)
    .default(normally);
}

const minute = (limit: number): RateLimit => ({ limit, window: 60 });

export const rateSettings = {
  RATE_LIMITS: z.enum(['on', 'off'], 'must be on or off').default('on').describe('Whether callers are limited at all'),
  RATE_LIMIT_CREATE: rateSetting(minute(600)).describe('Creating requests of one address, as requests/seconds, or `off`'),
  RATE_LIMIT_BYTES: rateSetting(minute(3_000)).describe('Requests of one address that send bytes, as requests/seconds, or `off`'),
  RATE_LIMIT_FETCH: rateSetting(minute(6_000)).describe('Fetches of one address, as requests/seconds, or `off`'),
  RATE_LIMIT_READ: rateSetting(minute(3_000)).describe('Reading requests of one address, as requests/seconds, or `off`'),
  // Passwords are guessed here.
  RATE_LIMIT_AUTH: rateSetting(minute(120)).describe('Signing in and getting tokens, for one address, as requests/seconds, or `off`'),
  RATE_LIMIT_PAGE: rateSetting(minute(1_200)).describe('Pages for one address, as requests/seconds, or `off`'),
  RATE_LIMIT_KNOWN_TIMES: integerSetting({ min: 1, max: 20, default: 5 }).describe('How many times as much an authenticated caller may send'),
  RATE_LIMIT_CALLERS: integerSetting({ min: 100, max: 1_000_000, default: 20_000 }).describe('Callers that one gateway keeps count of'),
};

type Settings = z.output<z.ZodObject<typeof rateSettings>>;

export function readRates(settings: Settings): Rates | undefined {
  if (settings.RATE_LIMITS === 'off') return undefined;
  const limitOf = (name: RateClass) => settings[`RATE_LIMIT_${name.toUpperCase() as Uppercase<RateClass>}`];
  return {
    limits: Object.fromEntries(rateClasses.flatMap((name) => { const limit = limitOf(name); return limit ? [[name, limit]] : []; })),
    knownTimes: settings.RATE_LIMIT_KNOWN_TIMES,
    maxCallers: settings.RATE_LIMIT_CALLERS,
  };
}
