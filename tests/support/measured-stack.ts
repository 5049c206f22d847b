/** A stack of which every service has a port for its metrics. */
import { findFreePort } from '../../deploy/local/free-port.ts';
import { startOwnStack, type OwnStack } from './own-stack.ts';

export interface MeasuredStack extends OwnStack {
  /** An answer of a service's own port. */
  at(service: string, path: string): Promise<Response>;
}

export async function startMeasuredStack(services: readonly string[]): Promise<MeasuredStack> {
  const ports: Record<string, number> = {};
  for (const service of services) ports[service] = await findFreePort();
  const own = await startOwnStack(Object.fromEntries(services.map((service) => [service, { METRICS_PORT: String(ports[service]) }])));
  return { ...own, at: (service, path) => fetch(`http://127.0.0.1:${ports[service]}${path}`) };
}
