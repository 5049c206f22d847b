/** /healthz says that this process runs; /readyz that NATS, every service and its database answer, and that this process is not leaving. */
import type { FastifyReply } from 'fastify';
import { healthContracts } from '../../../shared/contracts/health.ts';
import type { Bus } from '../../../shared/rpc.ts';
import { requestIdOf } from '../context.ts';

/** Probes may come often; the services are asked at most this often. */
const freshMs = 500;
const noTrace = `00-${'0'.repeat(31)}1-${'0'.repeat(15)}1-00`;

interface Readiness {
  readonly ready: boolean;
  readonly nats: boolean;
  readonly services: Readonly<Record<string, boolean>>;
}

export async function healthz() {
  return { ok: true };
}

export function readyz(bus: Bus, leaving: AbortSignal) {
  let latest: { at: number; readiness: Promise<Readiness> } | undefined;
  return async function readyz(_request: unknown, reply: FastifyReply) {
    if (!latest || Date.now() - latest.at > freshMs) latest = { at: Date.now(), readiness: ask(bus) };
    const known = await latest.readiness;
    const readiness = { ...known, ready: known.ready && !leaving.aborted };
    if (!readiness.ready) void reply.header('Retry-After', '1');
    return reply.code(readiness.ready ? 200 : 503).send(readiness);
  };
}

async function ask(bus: Bus): Promise<Readiness> {
  const context = { requestId: requestIdOf(undefined), traceparent: noTrace };
  const answers = await Promise.all(healthContracts.map(async (contract) => {
    const answer = await bus.call(contract, {}, context).catch(() => undefined) as { ready: boolean } | undefined;
    return [contract.service, answer?.ready === true] as const;
  }));
  const nats = bus.isConnected();
  return { ready: nats && answers.every(([, ready]) => ready), nats, services: Object.fromEntries(answers) };
}
