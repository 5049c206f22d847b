/** Two processes of every service, restarted one at a time as a supervisor does, and a client in front of them as a load balancer is. */
import { once } from 'node:events';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../deploy/local/free-port.ts';
import type { SupervisedProcess } from '../../deploy/local/process.ts';
import { serviceGroups } from '../../deploy/local/services.ts';
import { eventually, startFaultStack, type FaultStack } from './fault-stack.ts';
import { openWire, type Wire } from './wire.ts';

export interface Replica {
  readonly service: string;
  readonly process: SupervisedProcess;
  /** Where callers reach it; only a gateway is reached. */
  readonly baseUrl: string | undefined;
  /** What its own /readyz says. */
  isReady(): Promise<boolean>;
}

export interface Replicated {
  readonly stack: FaultStack;
  readonly replicas: readonly Replica[];
  end(): Promise<void>;
}

const readyWithinMs = 30_000;
const lookMs = 50;

/** A stack with two of each service. `env` holds settings by service. */
export async function startReplicated(env: Record<string, Record<string, string>>): Promise<Replicated> {
  const services = serviceGroups.flat();
  const ports = new Map<string, [number, number]>();
  for (const service of services) ports.set(service, [await findFreePort(), await findFreePort()]);
  const settings = services.map((service) => [service, { ...env[service], METRICS_PORT: String(ports.get(service)![0]) }] as const);
  const { stack, end } = await startFaultStack(Object.fromEntries(settings));
  const replicas: Replica[] = [];
  for (const service of services) {
    const [first, second] = ports.get(service)!;
    const port = await findFreePort();
    const isGateway = service === 'gateway';
    const process = stack.addReplica(service, { METRICS_PORT: String(second), ...(isGateway && { PORT: String(port) }) });
    await process.start();
    replicas.push(
      replica(service, stack.services[service]!, first, isGateway ? stack.baseUrl : undefined),
      replica(service, process, second, isGateway ? `http://localhost:${port}` : undefined),
    );
  }
  return { stack, replicas, end };
}

function replica(service: string, process: SupervisedProcess, metricsPort: number, baseUrl: string | undefined): Replica {
  return { service, process, baseUrl, isReady: async () => (await statusOf(`http://127.0.0.1:${metricsPort}/readyz`)) === 200 };
}

/** On a connection of its own: one that is kept would break with the process. */
async function statusOf(address: string): Promise<number | undefined> {
  try {
    const [response] = await once(get(address, { agent: false }), 'response');
    return response.resume().statusCode as number;
  } catch {
    return undefined;
  }
}

/** Tells a replica to stop, waits until it has, and starts it again. Answers its exit status. */
export async function restart({ process, isReady }: Replica): Promise<number | null> {
  await process.kill('SIGTERM');
  const status = process.exitCode;
  await process.start();
  await eventually(isReady, Boolean, readyWithinMs);
  return status;
}

export interface Balancer {
  /** The next address that says that it is ready. */
  choose(): string;
  close(): void;
}

/** Spreads over the gateways whose /readyz is good when it is looked at, as Kubernetes does. */
export function openBalancer(replicas: readonly Replica[]): Balancer {
  const gateways = replicas.filter(({ baseUrl }) => baseUrl).map((gateway) => ({ ...gateway, ready: true }));
  let turn = 0;
  const timer = setInterval(() => gateways.forEach((gateway) => void gateway.isReady().then((ready) => { gateway.ready = ready; })), lookMs);
  return {
    choose() {
      const ready = gateways.filter((gateway) => gateway.ready);
      if (ready.length === 0) throw new Error('no gateway is ready');
      return ready[(turn += 1) % ready.length]!.baseUrl!;
    },
    close: () => clearInterval(timer),
  };
}

export interface SteadyWire extends Wire {
  /** Every call that was not answered, or answered 5xx. */
  readonly failures: readonly string[];
  /** From now on calls go out as they come. */
  unbound(): void;
}

/** Sends calls at an even pace, never more than `perSecond`, to the addresses that a balancer chooses. */
export function openSteadyWire(baseUrl: string, balancer: Balancer, perSecond: number): SteadyWire {
  const failures: string[] = [];
  let pauseMs = 1_000 / perSecond;
  let next = 0;
  const wire = openWire(baseUrl, async () => {
    next = Math.max(next, performance.now()) + pauseMs;
    await sleep(Math.max(0, next - performance.now()));
    return balancer.choose();
  });
  const { send } = wire;
  return Object.assign(wire, {
    failures,
    unbound: () => { pauseMs = 0; },
    async send(...[path, call = {}]: Parameters<Wire['send']>) {
      const reply = await send(path, call);
      if (!reply.whole || reply.status >= 500) failures.push(`${call.method ?? ''} ${path.split('?', 1)[0]}: ${reply.status} ${reply.bytes.toString('utf8', 0, 300)}`);
      return reply;
    },
  });
}
