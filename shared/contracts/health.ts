/** Health: whether each service and its database answer. Served by every service, asked by the gateway's /readyz. */
import { z } from 'zod';
import { defineContracts, serviceNames, type Contract, type Named, type ServiceName } from '../contract.ts';

const check = {
  summary: 'Whether this service can work',
  accepts: [],
  input: z.strictObject({}),
  output: z.strictObject({ ready: z.boolean() }),
  errors: [],
  deadlineMs: 2_000,
} as const satisfies Omit<Contract, 'service'>;

/** The health contract of one service. */
export function healthOf<S extends ServiceName>(service: S) {
  return defineContracts({ readHealth: { ...check, service } });
}

export const healthContracts: readonly Named[] = serviceNames.map((service) => healthOf(service).readHealth);
